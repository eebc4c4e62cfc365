#include "ending.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include <unistd.h>

#include "fail.h"
#include "group.h"
#include "python.h"
#include "store.h"

namespace gompi_torch {

namespace {

pid_t process;          // that has joined the job
gompi_comm ends = GOMPI_COMM_NULL; // of all ranks: who ends well leaves it before all else
std::string* complaint; // why ranks have not called the same, if they have not

// Ends the process unless what was found out has come to light before, and the program has ended
// well.
void complain() {
	if (complaint->empty() || toldOfMismatch)
		return;
	std::fprintf(stderr, "gompi_torch: gompi: %s\n", complaint->c_str());
	std::fflush(nullptr);
	_exit(1);
}

// Python's own end is over. Only here the status is known: SystemExit passes no hook.
void leave(int status, void*) {
	if (status != 0 || getpid() != process)
		return;
	complain();
	if (ends != GOMPI_COMM_NULL)
		gompi_free(ends);
	Store::awaitOthers();
	if (gompi_finalize() != GOMPI_OK)
		*complaint = gompi_error();
	complain();
}

} // namespace

void leaveAtExit() {
	process = getpid();
	complaint = new std::string; // objects with destructors may be gone by then
	on_exit(leave, nullptr);
}

void watchEnds() {
	static std::once_flag once;
	std::call_once(once, [] {
		check(gompi_dup(GOMPI_WORLD, &ends));
		check(gompi_hide(ends));
	});
}

std::string awaitEnd(std::chrono::milliseconds limit) {
	if (ends == GOMPI_COMM_NULL)
		return "";
	gompi_set_timeout(ends, limit.count());
	return gompi_barrier(ends) == GOMPI_OK ? "" : gompi_error(); // it fails when a rank has left or is lost
}

void leaveGroups() {
	*complaint = Group::leaveAll();
	PythonWork::awaitAll(std::chrono::seconds(10));
}

} // namespace gompi_torch
