package markdown

import (
	"strings"

	"chorus/internal/theme"
)

// highlighter colours comments, strings and keywords of code. It only knows families of languages; a wrong guess costs a
// colour, never a character.
type highlighter struct {
	lang    *language
	within  string // the end of the comment or string that is open across lines
	inStyle style
	isDiff  bool
}

type language struct {
	line     []string  // starts a comment to the end of the line
	block    [2]string // start and end of a comment, "" for none
	quotes   string    // characters that start and end a string
	long     []string  // strings that may span lines, with equal start and end
	keywords map[string]struct{}
}

func words(s string) map[string]struct{} {
	out := map[string]struct{}{}
	for w := range strings.FieldsSeq(s) {
		out[w] = struct{}{}
	}
	return out
}

// languageOf is built for each code block: cheaper than a table that every program start would pay for.
func languageOf(name string) *language {
	const cFamily = "if else for while do switch case default break continue return struct enum union typedef static const void int char float double bool long short unsigned signed sizeof goto extern volatile "
	slashes := language{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: `"'`}
	hash := language{line: []string{"#"}, quotes: `"'`}
	switch strings.ToLower(name) {
	case "go", "golang":
		slashes.long = []string{"`"}
		slashes.keywords = words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota")
		return &slashes
	case "js", "javascript", "jsx", "ts", "typescript", "tsx", "mjs", "cjs":
		slashes.long = []string{"`"}
		slashes.keywords = words(cFamily + "let var function class extends implements interface type export import from async await new this super try catch finally throw typeof instanceof in of yield null undefined true false as readonly public private protected declare namespace")
		return &slashes
	case "c", "h", "cpp", "c++", "hpp", "cc", "cs", "csharp", "java", "kotlin", "kt", "swift", "scala", "dart", "php":
		slashes.keywords = words(cFamily + "class public private protected virtual override namespace using template typename new delete this super try catch finally throw throws import package interface extends implements final abstract var val let fun func guard null nullptr nil true false async await foreach string get set when object")
		return &slashes
	case "rust", "rs":
		slashes.quotes = `"` // a lone ' is a lifetime
		slashes.keywords = words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while")
		return &slashes
	case "css", "scss", "less", "proto", "json", "jsonc", "json5":
		slashes.keywords = words("true false null message service rpc returns syntax import option repeated")
		return &slashes
	case "py", "python":
		hash.long = []string{`"""`, "'''"}
		hash.keywords = words("and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False self match case")
		return &hash
	case "sh", "bash", "shell", "zsh", "fish", "console", "dockerfile", "docker", "make", "makefile":
		hash.keywords = words("if then else elif fi for in do done while until case esac function return exit export local readonly set unset shift source FROM RUN COPY ADD ENV CMD ENTRYPOINT WORKDIR ARG EXPOSE USER")
		return &hash
	case "rb", "ruby", "perl", "pl", "r", "elixir", "ex", "yaml", "yml", "toml", "ini", "conf", "hcl", "tf", "nix":
		hash.keywords = words("def end do if else elsif unless while until for in class module require return yield begin rescue ensure nil true false self then case when sub my use package function library null resource variable let with")
		return &hash
	case "sql":
		return &language{line: []string{"--"}, block: [2]string{"/*", "*/"}, quotes: `'"`, keywords: words("select from where and or not insert into values update set delete create table index view drop alter add column primary key foreign references join left right inner outer on group by order having limit offset union all distinct as null is in like between case when then else end begin commit rollback SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER ADD COLUMN PRIMARY KEY FOREIGN REFERENCES JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT OFFSET UNION ALL DISTINCT AS NULL IS IN LIKE BETWEEN CASE WHEN THEN ELSE END BEGIN COMMIT ROLLBACK")}
	case "lua", "haskell", "hs", "elm", "ada":
		return &language{line: []string{"--"}, quotes: `"`, keywords: words("and break do else elseif end false for function if in local nil not or repeat return then true until while module import where let case of data type class instance deriving")}
	case "html", "xml", "svg", "vue", "svelte":
		return &language{block: [2]string{"<!--", "-->"}, quotes: `"`}
	case "lisp", "clojure", "clj", "scheme", "el", "asm":
		return &language{line: []string{";"}, quotes: `"`, keywords: words("def defn defun defmacro let lambda fn if cond when do loop recur ns require setq")}
	}
	return nil
}

func newHighlighter(lang string) highlighter {
	if l := strings.ToLower(lang); l == "diff" || l == "patch" {
		return highlighter{isDiff: true}
	}
	return highlighter{lang: languageOf(lang)}
}

// line colours one line and remembers what remains open at its end.
func (h *highlighter) line(s string) []span {
	switch {
	case h.isDiff:
		return []span{{s, diffStyle(s)}}
	case h.lang == nil:
		return []span{{s, 0}}
	}
	var out []span
	for s != "" {
		var n int
		var st style
		if h.within != "" {
			n, st = h.throughOpen(s)
		} else {
			n, st = h.token(s)
		}
		out = append(out, span{s[:n], st})
		s = s[n:]
	}
	return out
}

func (h *highlighter) throughOpen(s string) (int, style) {
	st := h.inStyle
	i := strings.Index(s, h.within)
	if i < 0 {
		return len(s), st
	}
	n := i + len(h.within)
	h.within = ""
	return n, st
}

// token measures the next token and chooses its style.
func (h *highlighter) token(s string) (int, style) {
	for _, mark := range h.lang.line {
		if strings.HasPrefix(s, mark) {
			return len(s), theme.Comment
		}
	}
	if begin := h.lang.block[0]; begin != "" && strings.HasPrefix(s, begin) {
		h.within, h.inStyle = h.lang.block[1], theme.Comment
		return len(begin), theme.Comment
	}
	for _, mark := range h.lang.long {
		if strings.HasPrefix(s, mark) {
			h.within, h.inStyle = mark, theme.String
			return len(mark), theme.String
		}
	}
	if strings.IndexByte(h.lang.quotes, s[0]) >= 0 {
		return stringEnd(s), theme.String
	}
	n := 0
	for n < len(s) && isWordByte(s[n]) {
		n++
	}
	if n > 0 {
		if _, ok := h.lang.keywords[s[:n]]; ok {
			return n, theme.Keyword
		}
		return n, 0
	}
	for n = 1; n < len(s) && !isWordByte(s[n]) && s[n] != s[0]; n++ {
		if strings.IndexByte("\"'`/#-;<* ", s[n]) >= 0 {
			break
		}
	}
	return n, 0
}

// stringEnd finds the end of a string on its line; without one, the quote was an apostrophe.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 1
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
