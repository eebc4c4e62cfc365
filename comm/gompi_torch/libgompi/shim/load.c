/* How libgompi.so opens the Go code that does the work, and in which processes it does not.
 *
 * There is no Go here. A process that has Go's runtime loaded has its threads, and a child made by fork() has the
 * runtime without them: whatever it calls there waits for ever. So Go comes with libgompi-core.so, which gompi_init
 * opens; a child made before that is free to do so itself, and one made later is refused before Go is entered. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../../internal/guest/shim/room.h"
#include "shim.h"
#include "../../../../internal/guest/shim/signals.h"

#ifndef GOMPI_VERSION
#define GOMPI_VERSION "unknown"
#endif

struct gompi_core core;
_Thread_local char text[GOMPI_TEXT];

/* Whether the core is there: it is not used before that, and never closed. */
static atomic_int opened;

/* Held while the core is opened, which a fork waits for. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* This process is a child, and the core in it is the parent's. */
static int forked;

/* The check of gompi_set_check and its argument, for each thread. */
static _Thread_local gompi_check check;
static _Thread_local void *check_arg;

static char core_path[PATH_MAX];

/* The inodes of the core's sockets, by descriptor, 0 where there is none. The core stores them. */
enum { SOCKETS = 1 << 16 };
static uint64_t sockets[SOCKETS];

/* Closes what a child has of its parent's connections. While it lived, the peers would not hear of the parent's
 * death. A descriptor that has become something else meanwhile has another inode. fstat is a function since glibc
 * 2.33: older ones lack it. */
static void close_sockets(void) {
	struct stat st;
	int fd;

	for (fd = 0; fd < SOCKETS; fd++) {
		uint64_t inode = __atomic_load_n(&sockets[fd], __ATOMIC_RELAXED);

		if (inode && !syscall(SYS_fstat, fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == inode)
			close(fd);
	}
}

static void before_fork(void) { pthread_mutex_lock(&opening); }

static void in_parent(void) { pthread_mutex_unlock(&opening); }

static void in_child(void) {
	pthread_mutex_unlock(&opening);
	if (atomic_load(&opened) && !forked) {
		forked = 1;
		close_sockets();
	}
}

/* Where the core is: beside this library, whose path is looked up at once, since it may be relative to a folder
 * that the program leaves. */
__attribute__((constructor)) static void loaded(void) {
	Dl_info self;
	char path[PATH_MAX];
	char *slash;

	pthread_atfork(before_fork, in_parent, in_child);
	if (!dladdr((void *)loaded, &self) || !realpath(self.dli_fname, path))
		return;
	slash = strrchr(path, '/');
	snprintf(core_path, sizeof core_path, "%.*s/libgompi-core.so", (int)(slash - path), path);
}

/* fail sets the text of an error. */
__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return GOMPI_ERR_OTHER;
}

static int not_in_a_child(void) {
	if (!forked)
		return GOMPI_OK;
	return fail("this process is a child, made by fork() after its parent called gompi_init: "
	            "the rank is the parent");
}

int enter(void) {
	int err = not_in_a_child();

	if (!err && !atomic_load(&opened))
		return fail("gompi_init has not been called");
	if (!err)
		core.prepare_thread();
	return err;
}

/* Reports whether the notes of a module say that Go's linker made it. */
static int has_go_note(const char *at, size_t size) {
	const size_t padded = 3;

	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		const char *name = at + sizeof *note;
		size_t names = (note->n_namesz + padded) & ~padded;
		size_t length = sizeof *note + names + ((note->n_descsz + padded) & ~padded);

		if (length > size)
			return 0;
		if (note->n_namesz == 4 && !memcmp(name, "Go\0\0", 4))
			return 1;
		at += length;
		size -= length;
	}
	return 0;
}

/* Stores the path of a module that has Go's runtime in *found, and ends the search. */
static int is_go(struct dl_phdr_info *module, size_t size, void *found) {
	int i;

	(void)size;
	for (i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &module->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && has_go_note((const char *)module->dlpi_addr + p->p_vaddr, p->p_memsz)) {
			*(const char **)found = *module->dlpi_name ? module->dlpi_name : "the program";
			return 1;
		}
	}
	return 0;
}

/* Asks the check of this thread. What that calls asks none. */
static int64_t ask(int64_t milliseconds) {
	gompi_check asked = check;
	int64_t again;

	if (!asked)
		return 0;
	check = NULL;
	again = asked(check_arg, milliseconds);
	check = asked;
	return again;
}

/* Opens the core if it is not open. The lock is held. */
static int open_core(void) {
	const char *(*fill)(struct gompi_core *, int64_t (*)(int64_t));
	const char *version, *other;
	char room[200];
	void *library;

	if (atomic_load(&opened))
		return GOMPI_OK;
	if (dl_iterate_phdr(is_go, &other))
		return fail("%s is written in Go, too, and a process can have Go's runtime once: "
		            "libgompi brings its own", other);
	if (gompi_no_room(room, sizeof room))
		return fail("%s", room);
	gompi_signals();
	/* Go cannot be unloaded. */
	library = dlopen(core_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return fail("cannot open the other half of libgompi.so: %s", dlerror());
	/* Whatever it turns out to be, Go's threads may be there now. */
	atomic_store(&opened, 1);
	*(void **)&fill = dlsym(library, "gompi_core_fill");
	if (!fill)
		return fail("%s is not of gompi: %s", core_path, dlerror());
	version = fill(&core, ask);
	if (strcmp(version, GOMPI_VERSION) != 0)
		return fail("%s is of version %s: want %s, as libgompi.so", core_path, version, GOMPI_VERSION);
	return GOMPI_OK;
}

int gompi_init(int64_t milliseconds) {
	int err = not_in_a_child();

	if (err)
		return err;
	pthread_mutex_lock(&opening);
	err = open_core();
	pthread_mutex_unlock(&opening);
	if (err)
		return err;
	core.prepare_thread();
	return core.init(milliseconds, sockets, SOCKETS, text);
}

const char *gompi_error(void) { return text; }

const char *gompi_version(void) { return GOMPI_VERSION; }

void gompi_set_check(gompi_check function, void *arg) {
	check = function;
	check_arg = arg;
}
