// Package demo is the offline provider: three models that need no key and no
// network. It promises to be deterministic (the same request gives the same
// answer), to end at once when it is cancelled, never to call a tool twice for
// one request, and to say plainly that it is not a language model.
//
//   - demo/echo repeats what it was told.
//   - demo/guide greets a newcomer and turns simple requests ("list the files",
//     "read README.md", "run: go version") into tool calls.
//   - demo/script plays the script it finds in the prompt.
//
// # Scripts
//
// The script is in the last user message that contains one; demo/guide and
// demo/script both follow it. It is between a line ```demo and a line ```, or in
// lines that begin with "!" inside ordinary prose. For demo/script, a prompt whose
// first line is a directive is a script as a whole. demo/script echoes a message
// without a script. Each line is one directive:
//
//	say TEXT             a line of the answer; {{last}} is the text of the last tool
//	                     result, \n a line break; {{result 2 items.0.id}}, here and in
//	                     the arguments of a call, is a field of the second JSON result
//	                     since the script
//	think TEXT           a line of reasoning, shown before the answer
//	call TOOL {json}     call a tool; the arguments are sent exactly as written, even
//	                     if they are not JSON; none means {}
//	slow DURATION        from here on, wait that long before each piece
//	chunk N              from here on, send at most N characters in a piece
//	usage in=N out=N read=N write=N
//	                     what the answer says it used
//	stop REASON          end, tools, length, stop_sequence or refused
//	fail KIND [retry-after DURATION] [once | times N]
//	                     fail here with an error of that kind: auth, rate_limit,
//	                     overloaded, context_too_long, refused, network, bad_request
//	cut                  lose the connection here
//	wait                 say nothing more until cancelled
//	end  or  ---         the step ends; the next model call plays the next one
//	# …                  a comment
//
// The k-th model call of a script plays its k-th step: the assistant messages
// since the script are counted, so a script continues after a restart. When all
// steps are played, the next call answers "done", or echoes what was said since.
// The provider remembers "fail … once" for exactly the request that failed;
// another process, or a changed request, fails once again.
package demo
