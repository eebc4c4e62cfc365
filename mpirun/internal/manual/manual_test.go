package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/mpirun/internal/cmdline"
)

func TestEveryFlagIsInEveryFile(t *testing.T) {
	flags := cmdline.Help().Flags
	if len(flags) < 60 {
		t.Fatalf("%d flags are found, want all", len(flags))
	}
	all := Files()
	for name, form := range map[string]string{
		"man/man1/gompirun.1": `\-`, "bash-completion/completions/gompirun": "-",
		"zsh/site-functions/_gompirun": "'-", "fish/vendor_completions.d/gompirun.fish": "-o ",
	} {
		for _, f := range flags {
			for _, flag := range f.Names {
				if strings.HasPrefix(name, "man") {
					flag = strings.ReplaceAll(flag, "-", `\-`)
				}
				if !strings.Contains(all[name], form+flag) {
					t.Errorf("%s has no -%s", name, flag)
				}
			}
		}
	}
}

// gompirun accepts every completed value.
func TestValuesAreThoseOfTheCommandLine(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for _, f := range cmdline.Help().Flags {
		words, _ := kindOf(f)
		for _, word := range strings.Fields(words) {
			if word == "ppr:" {
				word += "1:node"
			}
			if _, err := cmdline.Parse([]string{"-" + f.Names[0], word, "p"}, none, func(string) {}); err != nil {
				t.Errorf("-%s %s: %v", f.Names[0], word, err)
			}
		}
	}
}

func TestBashCompletes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "gompirun")
	for path, text := range map[string]string{script: Files()["bash-completion/completions/gompirun"],
		filepath.Join(dir, "hosts"): ""} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		line []string // the last word is being typed
		want string   // all, or with "..." at the end some of them
	}{
		{[]string{"-hostf"}, "-hostfile"},
		{[]string{"--hostf"}, "--hostfile"},
		{[]string{"--map"}, "--map-by"},
		{[]string{"--map-"}, "--map-by"},
		{[]string{"--map_b"}, "--map_by"},
		{[]string{"-map_"}, "-map_by"},
		{[]string{"-np", "4", "--map_by", "n"}, "node numa"},
		{[]string{"--map_by", "node", "./a", "-hostf"}, ""},
		{[]string{"doctor", "--port"}, "--port-range"},
		{[]string{"-np", "4", "-map-by", "n"}, "node numa"},
		{[]string{"-np", "4", "--map-by", "n"}, "node numa"},
		{[]string{"-stdin", ""}, "all none"},
		{[]string{"-hostfile", "ho"}, "hosts"},
		{[]string{"-np", ""}, ""},
		{[]string{"doc"}, "doctor ..."},
		{[]string{"doctor", "-por"}, "-port-range"},
		{[]string{"attach", "-"}, "-job -debugger"},
		{[]string{"kill", "-"}, "-signal -s"},
		{[]string{"to"}, "top ..."},
		{[]string{"comp"}, "completion ..."},
		{[]string{"-np", "2", "./a", "-hostf"}, ""},
		{[]string{"-np", "2", "./a", "ho"}, "hosts"},
		{[]string{"-np", "2", "./a", "b", ":", "-wdi"}, "-wdir"},
	} {
		cmd := exec.Command("bash", "-c", `source "$0"; COMP_WORDS=(gompirun "$@"); COMP_CWORD=$#; _gompirun; echo "${COMPREPLY[*]}"`)
		cmd.Args = append(append(cmd.Args, script), tt.line...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		got := strings.TrimSpace(string(out))
		if want, some := strings.CutSuffix(tt.want, " ..."); err != nil ||
			got != tt.want && !(some && slices.Contains(strings.Fields(got), want)) {
			t.Errorf("%q: %v: %q, want %q", tt.line, err, got, tt.want)
		}
	}
}

func TestFishCompletes(t *testing.T) {
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip("needs fish")
	}
	script := filepath.Join(t.TempDir(), "gompirun.fish")
	if err := os.WriteFile(script, []byte(Files()["fish/vendor_completions.d/gompirun.fish"]), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--map": "--map-by", "-map": "-map-by", "--map_b": "--map_by", "-map_b": "-map_by", "--map_by no": "node",
		"--map-by no": "node",
	} {
		out, err := exec.Command("fish", "-N", "-c",
			"source "+script+"; complete -C'gompirun "+line+"' | cut -f1").Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %s", line, got, err, want)
		}
	}
}

// A zsh on a terminal shows its line when % is typed.
func TestZshCompletes(t *testing.T) {
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Skip("needs zsh")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"_gompirun": Files()["zsh/site-functions/_gompirun"],
		"setup":     "fpath=(" + dir + " $fpath); autoload -U compinit; compinit -u -D; show() { print -r -- \"<$BUFFER>\" }; zle -N show; bindkey % show\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := "zmodload zsh/zpty; zpty z zsh -f -i; zpty -w z source " + dir + `/setup
		[[ -z $SOURCED ]] || { zpty -w z 'compdef -d gompirun'; zpty -w z source ` + dir + `/_gompirun }
		for line in --map -map --map_b -map_b; do
			zpty -w -n z $'\C-Ugompirun '$line$'\t%'; zpty -r z out '*<*>*'; print -r -- $out
		done`
	for _, sourced := range []string{"", "1"} {
		cmd := exec.CommandContext(t.Context(), "zsh", "-f", "-c", script)
		cmd.Env = append(os.Environ(), "SOURCED="+sourced)
		out, err := cmd.Output()
		got := regexp.MustCompile("<.*>").FindAllString(string(out), -1)
		want := []string{"<gompirun --map-by >", "<gompirun -map-by >", "<gompirun --map-by >", "<gompirun -map-by >"}
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("sourced %q: %q, %v, want %q", sourced, out, err, want)
		}
	}
}

func TestOtherShellsTakeTheirFiles(t *testing.T) {
	for shell, name := range map[string]string{"zsh": "zsh/site-functions/_gompirun",
		"fish": "fish/vendor_completions.d/gompirun.fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("needs %s", shell)
			}
			cmd := exec.Command(shell, "-n", "/dev/stdin")
			cmd.Stdin = strings.NewReader(Files()[name])
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v: %s", shell, err, out)
			}
		})
	}
}

func TestEveryCommandHasAPage(t *testing.T) {
	for _, name := range []string{"", "gompirun", "ps", "gompirun-man", "completion"} {
		roff, plain, err := Page(name)
		title := "gompirun"
		if short := strings.TrimPrefix(strings.TrimPrefix(name, "gompirun"), "-"); short != "" {
			title += " " + short
		}
		if err != nil || !strings.Contains(roff, strings.ReplaceAll(strings.ToUpper(title), " ", `\-`)) ||
			!strings.HasPrefix(plain, "usage: "+title+" [") && !strings.HasPrefix(plain, "usage: "+title+" bash") {
			t.Errorf("%q: %v, %.80q, %.80q", name, err, roff, plain)
		}
	}
	if _, _, err := Page("pss"); err == nil || !strings.Contains(err.Error(), `"pss": want gompirun, or one of its commands: doctor, `) {
		t.Errorf("pss: %v", err)
	}
}
