package proc

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The walk needs no frame pointers, and goes through functions whose frames have no fixed size.
const sleeper = `#include <alloca.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int inner(char *room)
{
	pause();
	return room[0];
}
__attribute__((noinline)) int middle(int n)
{
	char *room = alloca(n);
	memset(room, 1, n);
	return inner(room) + 1;
}
__attribute__((noinline)) int outer(int n) { return middle(n * 100) + 1; } /* line 16 */
int main(int argc, char **argv)
{
	puts("ready");
	fflush(stdout);
	return outer(argc) + 1;
}
`

func TestAWalkFindsTheFramesOfAProgram(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skipf("no gcc, or no amd64: %v", err)
	}
	for flags, want := range map[string]string{
		"-g -O0":   `  pause\(\) in libc.*\n  inner\(\) at src/prog\.c:7\n  middle\(\) at src/prog\.c:14\n  outer\(\) at src/prog\.c:16\n  main\(\) at src/prog\.c:21\n$`,
		"-g -O2":   `  pause\(\) in libc.*\n  inner\(\) at src/prog\.c:7\n  middle\(\) at src/prog\.c:14\n  outer\(\) at src/prog\.c:16\n  main\(\) at src/prog\.c:21\n$`,
		"-O3 -pie": `  pause\(\) in libc.*\n  inner\(\)\n  middle\(\)\n  outer\(\)\n  main\(\)\n$`,
		"-O2 -s":   `^$`, // it has no names
	} {
		dir := filepath.Join(t.TempDir(), "src")
		source, prog := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, []byte(sleeper), 0o666); err != nil {
			t.Fatal(err)
		}
		args := append(strings.Fields(flags), "-fno-optimize-sibling-calls", "-o", prog, source)
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, out)
		}
		cmd := exec.Command(prog)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n')
		for deadline := time.Now().Add(time.Minute); statOf(dirOf(cmd.Process.Pid))[0] != "S" &&
			time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // nothing tells
		}
		if got := walk(cmd.Process.Pid); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("gcc %s: %s\nwant %s", flags, got, want)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}
