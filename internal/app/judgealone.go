package app

import (
	"context"

	"chorus/internal/sandbox"
	"chorus/internal/store/processes"
)

// JudgeAlone judges a program that a background process wants to start, in the process
// that looks after it. err means that the program could not be judged.
func (a *App) JudgeAlone(ctx context.Context, id string, program sandbox.Exec) (refused, err error) {
	p, err := processes.New(a.DB).Process(ctx, id)
	if err != nil {
		return nil, err
	}
	judge, err := a.Setup.JudgeProcess(ctx, p)
	if err != nil {
		return nil, err
	}
	ask, refused := judge(program)
	if ask != nil && refused == nil {
		refused = ask(ctx)
	}
	return refused, nil
}
