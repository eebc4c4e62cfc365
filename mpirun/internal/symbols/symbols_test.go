package symbols

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const program = `#include <stdio.h>
#include <dlfcn.h>
__attribute__((noinline)) void where(void)
{
	Dl_info at;
	char *here = __builtin_return_address(0);
	dladdr(here, &at);
	printf("%lx\n", (unsigned long)(here - (char *)at.dli_fbase));
}
int main(void)
{
	where(); /* line 12 */
	return 0;
}
`

func TestPlacesOfCalls(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here")
	}
	for _, tt := range []struct{ flags, want string }{
		{"-g -pie", `^source/prog\.c:12$`}, {"-g -no-pie", `^source/prog\.c:12$`},
		{"-g -O2", `^source/prog\.c:12$`},
		{"-pie", `^main\+0x[0-9a-f]+$`}, {"-no-pie", `^main\+0x[0-9a-f]+$`}, {"-s", `^$`},
	} {
		dir := filepath.Join(t.TempDir(), "source")
		source, prog := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, []byte(program), 0o666); err != nil {
			t.Fatal(err)
		}
		args := append(strings.Fields(tt.flags), "-D_GNU_SOURCE", "-o", prog, source, "-ldl")
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, out)
		}
		out, err := exec.Command(prog).Output()
		if err != nil {
			t.Fatal(err)
		}
		offset, err := strconv.ParseUint(strings.TrimSpace(string(out)), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(prog)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Place(offset); !regexp.MustCompile(tt.want).MatchString(got) {
			t.Errorf("gcc %s: %q, want %s", tt.flags, got, tt.want)
		}
		p.Close()
	}
}
