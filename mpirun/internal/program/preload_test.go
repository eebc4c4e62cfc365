package program

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

func TestAgentsGetThePiecesTheyAskFor(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("x", ctl.MaxPiece) + "end"
	for name, text := range map[string]string{"prog": "#!/bin/sh\n", "data": text, "other/data": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	programs := []cmdline.Program{{Argv: []string{"./prog"}, Wdir: dir}}
	data := filepath.Join(dir, "data")
	o, err := OpenOffer(cmdline.Preload{Binary: true, Files: data}, "", programs)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	l := &ctl.Launch{Programs: make([]ctl.Program, 1)}
	o.Describe(l)
	if want := (ctl.File{Name: "data", Sum: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Size: int64(len(text)),
		Mode: 0o700}); len(l.Files) != 1 || l.Files[0] != want || l.Programs[0].Size != 10 {
		t.Errorf("%+v, %+v; want %+v and a program of 10 bytes", l.Programs, l.Files, want)
	}
	for _, tt := range []struct {
		offer *Offer
		want  ctl.Want
		piece string
	}{
		{o, ctl.Want{Item: 0}, "#!/bin/sh\n"},
		{o, ctl.Want{Item: 1}, text[:ctl.MaxPiece]},
		{o, ctl.Want{Item: 1, Offset: ctl.MaxPiece}, "end"},
		{o, ctl.Want{Item: 1, Offset: ctl.MaxPiece + 3}, ""},
		{o, ctl.Want{Item: 2}, ""},
		{nil, ctl.Want{Item: 0}, ""},
	} {
		if got := tt.offer.Piece(&tt.want); string(got.Data) != tt.piece {
			t.Errorf("%+v: %d bytes, want %d", tt.want, len(got.Data), len(tt.piece))
		}
	}
	for files, want := range map[string]string{
		data + "," + filepath.Join(dir, "other/data"): "two files are named",
		dir:                          "want a regular file",
		filepath.Join(dir, "nosuch"): "no such file",
	} {
		o, err := OpenOffer(cmdline.Preload{Files: files}, "", programs)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "-preload-files ") {
			t.Errorf("%s: %v, want %s", files, err, want)
		}
		o.Close()
	}
}
