/* monitor LIBRARY FUNCTION: the monitor of Go's runtime in a library, and no other thread, sleeps up to 5 ms
 * longer than it asks for. The function is one of Go's, which wakes it. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

/* Reads a file of a thread: what begins with a number. */
static long of_thread(const char *name, const char *thread) {
	char path[300], text[100] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/%s", thread, name);
	if (!(f = fopen(path, "r")))
		return -1;
	if (!fgets(text, sizeof text, f))
		text[0] = 0;
	fclose(f);
	return atol(text);
}

static int threads, patient, seen, others; /* others: of another thread */

/* Notes which threads sleep for a time. */
static void sample(void) {
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	threads = patient = 0;
	while ((e = readdir(d))) {
		int is_patient, sleeps;

		if (e->d_name[0] == '.')
			continue;
		is_patient = of_thread("timerslack_ns", e->d_name) == 5000000;
		sleeps = of_thread("syscall", e->d_name) == SYS_nanosleep;
		threads++;
		patient += is_patient;
		seen += is_patient && sleeps;
		others += !is_patient && sleeps;
	}
	closedir(d);
}

/* Computes for a while: nothing but the monitor has anything to do. */
static void compute(void) {
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 2000000);
}

int main(int argc, char **argv) {
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*wake)(void);
	time_t end = time(NULL) + 20;

	if (!library || !(*(void **)&wake = dlsym(library, argv[2]))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	while (time(NULL) < end) {
		wake();
		compute();
		sample();
		if (patient == 1 && threads >= 4 && seen >= 50 && others < seen / 4)
			return 0;
	}
	fprintf(stderr, "%d of %d threads have a slack of 5 ms, want 1; they slept %d times, others %d times\n", patient, threads, seen, others);
	return 1;
}
