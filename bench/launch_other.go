//go:build !linux

package main

import (
	"os"
	"time"
)

// toolTime is not known here.
func toolTime(int) time.Duration { return 0 }

func uncache(*os.File) error { return nil }

// residentPeak cannot be told here while a process runs.
func residentPeak(int) int64 { return 0 }

func residentNow(int) int64 { return 0 }

func privateNow(int) int64 { return 0 }

func privateOfAll(int) int64 { return 0 }
