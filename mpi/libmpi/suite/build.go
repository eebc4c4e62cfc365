package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// configuration holds the results of MPICH's configure on a current system.
const configuration = `#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDARG_H 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_GETRUSAGE 1
#define HAVE_MEMSET 1
#define HAVE_STRDUP 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define USE_LONG_DOUBLE_COMPLEX 1
#define HAVE__BOOL 1
#define HAVE_MPI_INIT_THREAD 1
#define HAVE_MPI_WIN_CREATE 1
#define HAVE_MPI_TYPE_CREATE_STRUCT 1
#define HAVE_FORTRAN_BINDING 1
#define F77_NAME_LOWER_USCORE 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
`

// flags are the compiler flags for all programs. Without TEST_NEIGHB_COLL, neighbor collectives
// are tested only on MPICH. The two OMPI macros make Open MPI's header declare the functions that
// MPI 3 removed, which the library has.
var flags = []string{
	"-O0", "-w", "-DTEST_NEIGHB_COLL=1", "-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", "-DOMPI_REMOVED_USE_STATIC_ASSERT=0",
}

// moreFlags are the flags for one MPI. Open MPI's header lacks the combiners and markers that MPI
// 3 removed. MPI 5's header lacks the removed functions, of which some have another name, and the
// names needed only by Fortran.
var moreFlags = map[string][]string{
	"mpich":   {"-DHAVE_MPI2_COMBINERS=1", "-DHAVE_MPI_INTEGER16=1"},
	"openmpi": {"-DHAVE_MPI_INTEGER16=1", "-DMPI_INTEGER16=MPI_DATATYPE_NULL"},
	"abi": {
		"-DHAVE_MPI_INTEGER16=1", "-DMPI_Type_hvector=MPI_Type_create_hvector",
		"-DMPI_Type_hindexed=MPI_Type_create_hindexed",
		"-DMPI_Type_struct=MPI_Type_create_struct", "-DMPI_Address=MPI_Get_address",
		"-DMPI_Errhandler_create=MPI_Comm_create_errhandler", "-DMPI_Errhandler_set=MPI_Comm_set_errhandler",
		"-DMPI_Errhandler_get=MPI_Comm_get_errhandler",
		"-DMPI_Fint=int", "-DMPI_Message_c2f=MPI_Message_toint", "-DMPI_Message_f2c=MPI_Message_fromint",
		"-DPMPI_Message_c2f=PMPI_Message_toint", "-DPMPI_Message_f2c=PMPI_Message_fromint",
		"-DMPIO_Request=MPI_Request", "-DMPIO_Wait=MPI_Wait", "-DMPIO_Test=MPI_Test",
	},
}

// helpers are the sources, below the suite's folder, that are linked into programs. Programs with
// threads leave out the first, the others the second.
var helpers = []string{
	"util/mtest_single.c", "util/mtest_thread.c", "util/mtest.c", "util/mtest_common.c", "util/dtypes.c",
	"dtpools/src/dtpools.c", "dtpools/src/dtpools_attr.c", "dtpools/src/dtpools_custom.c", "dtpools/src/dtpools_desc.c",
	"dtpools/src/dtpools_init_verify.c", "dtpools/src/dtpools_misc.c",
}

// build builds the programs of runs, and returns why some could not be, by face and program.
func (s *suite) build(runs []run) map[string]string {
	var mu sync.Mutex
	missing := map[string]string{}
	programs := map[string]run{}
	for _, r := range runs {
		programs[r.binary()] = r
	}
	begin := time.Now()
	var lists = map[string]makefile{}
	for _, r := range programs {
		if _, ok := lists[r.dir]; !ok {
			lists[r.dir] = readMakefile(filepath.Join(s.source, r.dir, "Makefile.am"))
		}
	}
	objects := map[string][]string{}
	for _, face := range s.faces {
		o, err := s.compileHelpers(face)
		if err != nil {
			missing[face] = err.Error()
		}
		objects[face] = o
	}
	var all []run
	for _, r := range programs {
		all = append(all, r)
	}
	if slices.ContainsFunc(all, func(r run) bool { return language(r.dir) != "" }) {
		if err := s.prepareFortran(); err != nil {
			fmt.Println(err) // the programs that need the missing file name it
		}
	}
	inParallel(s.jobs, all, func(r run) {
		if err := s.compile(r, lists[r.dir], objects[r.face]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			missing[r.binary()] = err.Error()
		}
	})
	fmt.Printf("%d programs are built, %d cannot be: %v\n", len(programs)-len(missing), len(missing),
		time.Since(begin).Round(time.Second))
	return missing
}

func (s *suite) compileHelpers(face string) (objects []string, err error) {
	dir := filepath.Join(s.work, face, "util")
	for _, sub := range []string{dir, filepath.Join(s.work, "include", "dtpools")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"include/mpitestconf.h", "include/dtpoolsconf.h"} {
		if err := writeIfOther(filepath.Join(s.work, name), configuration); err != nil {
			return nil, err
		}
	}
	for _, source := range helpers {
		object := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c")+".o")
		objects = append(objects, object)
		if err := s.cc(face, object, []string{filepath.Join(s.source, source)}, "-c"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (s *suite) compile(r run, m makefile, objects []string) error {
	sources, ok := m.sources[r.program]
	if !ok {
		sources = []string{r.program + extension(r.dir)}
	}
	files := make([]string, len(sources))
	inC := true
	for i, f := range sources {
		files[i] = s.find(r.dir, f)
		inC = inC && strings.HasSuffix(f, ".c")
	}
	binary := filepath.Join(s.work, r.binary())
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	if !inC {
		return s.compileFortran(r, binary, files)
	}
	if strings.Contains(r.dir, "threads") {
		objects = objects[1:]
	} else {
		objects = slices.Delete(slices.Clone(objects), 1, 2)
	}
	more := append(slices.Clone(m.defines[r.program]), "-lm", "-lpthread")
	if r.face == "openmpi" { // only our library has the functions of MPI 4
		more = append(more, filepath.Join(filepath.Dir(s.gompirun), "lib/openmpi/libmpi.so.40"))
	}
	return s.cc(r.face, binary, append(files, objects...), more...)
}

// cc makes target from files unless target is newer than all of them.
func (s *suite) cc(face, target string, files []string, more ...string) error {
	if isNewer(target, append(files, filepath.Join(s.work, "include/mpitestconf.h"))) {
		return nil
	}
	args := slices.Concat(flags, moreFlags[face], []string{
		"-I" + filepath.Join(s.work, "include"), "-I" + filepath.Join(s.work, "include", "dtpools"),
		"-I" + filepath.Join(s.source, "include"), "-I" + filepath.Join(s.source, "dtpools/include"), "-o", target,
	}, files, more)
	out, err := exec.Command(s.compiler(face), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s", firstError(string(out), err))
	}
	return nil
}

// compiler returns the compiler of a face. The standard's own interface has gompicc, which lies
// beside gompirun.
func (s *suite) compiler(face string) string {
	if face == "abi" {
		return filepath.Join(filepath.Dir(s.gompirun), "gompicc")
	}
	return "mpicc." + face
}

// firstError returns the compiler's first complaint: gcc's after error:, gfortran's after Error:.
func firstError(out string, err error) string {
	for _, l := range strings.Split(out, "\n") {
		if _, what, ok := strings.Cut(l, "rror: "); ok {
			return what
		}
		if _, what, ok := strings.Cut(l, "undefined reference to "); ok {
			return "undefined reference to " + what
		}
	}
	return err.Error()
}

func isNewer(target string, files []string) bool {
	t, err := os.Stat(target)
	if err != nil {
		return false
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.ModTime().After(t.ModTime()) {
			return false
		}
	}
	return true
}

func writeIfOther(file, text string) error {
	if old, err := os.ReadFile(file); err == nil && string(old) == text {
		return nil
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// A makefile is automake's entry for the programs that are built from more than one source, or
// from a source of another name.
type makefile struct{ sources, defines map[string][]string }

var makeRule = regexp.MustCompile(`(?m)^(?:nodist_)?(\w+?)_(SOURCES|CPPFLAGS)\s*=(.*)$`)

var sourceFile = regexp.MustCompile(`\.(c|f|f90)$`)

func readMakefile(file string) makefile {
	m := makefile{map[string][]string{}, map[string][]string{}}
	text, _ := os.ReadFile(file) // without a makefile each program has one source
	for _, f := range makeRule.FindAllStringSubmatch(string(text), -1) {
		for _, word := range strings.Fields(f[3]) {
			switch {
			case f[2] == "SOURCES" && sourceFile.MatchString(word):
				m.sources[f[1]] = append(m.sources[f[1]], word)
			case f[2] == "CPPFLAGS" && strings.HasPrefix(word, "-D"):
				m.defines[f[1]] = append(m.defines[f[1]], word)
			}
		}
	}
	return m
}

// inParallel calls f for each of all, n at once.
func inParallel[T any](n int, all []T, f func(T)) {
	work := make(chan T)
	var wg sync.WaitGroup
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for x := range work {
				f(x)
			}
		}()
	}
	for _, x := range all {
		work <- x
	}
	close(work)
	wg.Wait()
}
