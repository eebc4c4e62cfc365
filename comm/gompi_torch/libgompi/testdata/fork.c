/*
 * Children made by fork().
 *   before: each process loads the library and forks; the child is the rank.
 *   after: a child of a rank is refused at once, and has none of its connections.
 *   lives: rank argv[2] dies while a child of it lives until the end of its input; the others hear of it
 *   before that, as the test ends the input when they have ended.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void sum_is_size(void) {
	int64_t x = 1;

	OK(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_INT64, GOMPI_SUM));
	CHECK(x == size_of(GOMPI_WORLD), "the sum is %ld", x);
}

static void done(void) {
	int me = rank_of(GOMPI_WORLD), size = size_of(GOMPI_WORLD);

	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	fflush(stdout);
}

static void wait_for(pid_t child) {
	int status;

	CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %x", status);
}

static void before(void) {
	pid_t child = fork();

	if (child == 0) {
		OK(gompi_init(0));
		sum_is_size();
		done();
		_exit(0);
	}
	wait_for(child);
}

static int is_socket(int fd) {
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

/* own is a socket of the program's, which it keeps. */
static void in_child(int own) {
	int x, fd;
	gompi_request r = 1;

	FAILS(gompi_rank(GOMPI_WORLD, &x), GOMPI_ERR_OTHER, "fork");
	FAILS(gompi_init(0), GOMPI_ERR_OTHER, "fork");
	FAILS(gompi_barrier(GOMPI_WORLD), GOMPI_ERR_OTHER, "the rank is the parent");
	FAILS(gompi_wait(&r, 0, NULL), GOMPI_ERR_OTHER, "fork");
	FAILS(gompi_send(GOMPI_WORLD, &x, 1, GOMPI_INT32, 0, 0), GOMPI_ERR_OTHER, "fork");
	FAILS(gompi_finalize(), GOMPI_ERR_OTHER, "fork");
	CHECK(is_socket(own), "the program's own socket is closed");
	for (fd = 3; fd < 1024; fd++)
		CHECK(fd == own || !is_socket(fd), "descriptor %d is a socket", fd);
	_exit(0);
}

static void after(void) {
	int pair[2];
	pid_t child;

	OK(gompi_init(0));
	sum_is_size();
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no pair of sockets");
	close(pair[1]);
	child = fork();
	if (child == 0)
		in_child(pair[0]);
	wait_for(child);
	child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "exit 0", NULL);
		_exit(1);
	}
	wait_for(child);
	sum_is_size();
	done();
}

/* Forks, tells the others, and dies once all have answered. */
static void die(int size) {
	char byte;

	if (fork() == 0) {
		CHECK(read(0, &byte, 1) == 0, "no input");
		_exit(0);
	}
	for (int r = 0; r < size; r++)
		if (r != rank_of(GOMPI_WORLD)) {
			OK(gompi_send(GOMPI_WORLD, NULL, 0, GOMPI_INT8, r, 1));
			OK(gompi_recv(GOMPI_WORLD, NULL, 0, GOMPI_INT8, r, 2, NULL));
		}
	raise(SIGKILL);
}

static void lives(int dies) {
	int me, size;

	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	sum_is_size();
	if (me == dies)
		die(size);
	OK(gompi_recv(GOMPI_WORLD, NULL, 0, GOMPI_INT8, dies, 1, NULL));
	OK(gompi_send(GOMPI_WORLD, NULL, 0, GOMPI_INT8, dies, 2));
	FAILS(gompi_recv(GOMPI_WORLD, NULL, 0, GOMPI_INT8, dies, 3, NULL), GOMPI_ERR_REVOKED, "");
	printf("rank %d heard\n", me);
}

int main(int argc, char **argv) {
	CHECK(argc > 1, "want before, after or lives");
	if (!strcmp(argv[1], "before"))
		before();
	else if (!strcmp(argv[1], "after"))
		after();
	else
		lives(atoi(argv[2]));
	return 0;
}
