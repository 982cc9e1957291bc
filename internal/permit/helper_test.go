package permit

import "testing"

func mustPreset(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustCompile(t testing.TB, r Rules) *Profile {
	t.Helper()
	p, err := Compile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func judged(p *Profile, command string) Judgement {
	return p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{})
}
