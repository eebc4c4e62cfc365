// What the Python side of gompi_torch calls, by ctypes: python/gompi_torch/_C.py. Objects of torch's
// are passed by the addresses that they have in C++.
#include <algorithm>
#include <numeric>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "ending.h"
#include "fail.h"
#include "group.h"
#include "heap.h"
#include "interpreter.h"
#include "members.h"
#include "store.h"

namespace gompi_torch {

namespace {

// A communicator of the same ranks as GOMPI_WORLD, for one group or store: when that breaks, the
// others are whole.
Communicator world() {
	gompi_comm c;
	check(gompi_dup(GOMPI_WORLD, &c));
	return Communicator(c);
}

using Milliseconds = std::chrono::milliseconds;

std::atomic<bool> joined{false};

// A limit that gompi takes: 0 is none, and its clock has nanoseconds.
int64_t limitOf(Milliseconds time) { return std::clamp<int64_t>(time.count(), 0, INT64_MAX / 1000000); }

std::pair<int, int> join(Milliseconds time) {
	static std::mutex once;
	std::lock_guard<std::mutex> lock(once);
	if (!joined) {
		check(gompi_init(limitOf(time)));
		leaveAtExit();
		joined = true;
	}
	int rank, size;
	check(gompi_rank(GOMPI_WORLD, &rank));
	check(gompi_size(GOMPI_WORLD, &size));
	return {rank, size};
}

using Options = c10d::DistributedBackendOptions;
using GroupPtr = c10::intrusive_ptr<GroupBase>;

GroupPtr worldGroup(const Options& o, Milliseconds timeout) {
	auto [rank, size] = join(timeout);
	std::vector<int> members(size);
	std::iota(members.begin(), members.end(), 0);
	awaitMembers(o.store, members, rank, timeout);
	watchEnds();
	heap::open();
	return c10::make_intrusive<Group>(world(), o.group_id, rank, size, o.store, timeout);
}

// A group of some ranks, which alone call it, with the same tag.
GroupPtr someGroup(const Options& o, int tag, Milliseconds timeout) {
	gompi_comm c;
	std::vector<int> ranks(o.global_ranks_in_group.begin(), o.global_ranks_in_group.end());
	awaitMembers(o.store, ranks, o.group_rank, timeout);
	check(gompi_create_group(GOMPI_WORLD, ranks.data(), ranks.size(), tag, &c));
	return c10::make_intrusive<Group>(Communicator(c), o.group_id, o.group_rank, static_cast<int>(ranks.size()), o.store, timeout);
}

#if TORCH_VERSION_MAJOR >= 2
// Python gets a group out of one of torch's own, which has it for a device.
void give(const GroupPtr& group, void* to) {
	static_cast<c10d::ProcessGroup*>(to)->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, group);
}
#else
// A ProcessGroup is in no object that torch 1 gives to Python: it is put into a list, by pybind11.
void give(const GroupPtr& group, void* to) {
	python::Locked lock;
	py::reinterpret_borrow<py::list>(static_cast<PyObject*>(to)).append(py::cast(group));
}
#endif

// A store of all ranks. A rank that does not come is waited for as long as the limit says, and then
// no group can be made any more.
c10::intrusive_ptr<c10d::Store> store(Milliseconds time) {
	auto [rank, size] = join(time);
	check(gompi_set_timeout(GOMPI_WORLD, limitOf(time)));
	auto c = world();
	check(gompi_set_timeout(GOMPI_WORLD, 0));
	check(gompi_hide(c.get()));
	return c10::make_intrusive<Store>(std::move(c), rank, size);
}

// Where the ranks of a group are that have called different collectives: what Python is asked for
// on this thread.
thread_local Options mismatch;

// Does something without Python's lock, and has its caller in Python get what it throws.
template <typename F> auto forPython(F f) -> decltype(f()) {
	try {
		python::Unlocked unlocked;
		return f();
	} catch (...) {
		python::raise(std::current_exception());
	}
	return decltype(f())();
}

} // namespace

} // namespace gompi_torch

extern "C" {

using namespace gompi_torch;

// Joins the job, once, for which it waits for so long at most, if not 0; tells this rank and their
// number.
void gompi_torch_join(int64_t limit, int* rank, int* size) {
	forPython([&] { std::tie(*rank, *size) = join(Milliseconds(limit)); });
}

bool gompi_torch_joined() { return joined; }

// A group of all ranks, which all call it; with a tag one of some, which all of them call with the same.
void gompi_torch_group(const Options* o, int tag, int64_t timeout, void* to) {
	forPython([&] { give(tag < 0 ? worldGroup(*o, Milliseconds(timeout)) : someGroup(*o, tag, Milliseconds(timeout)), to); });
}

// A store of all ranks, which all call it within the limit.
void gompi_torch_store(int64_t limit, Options* to) {
	forPython([&] { to->store = store(Milliseconds(limit)); });
}

// Has a function say where ranks are that called different collectives, by gompi_torch_mismatch.
void gompi_torch_explain_mismatches(python::Object f) {
	explainMismatch = [explain = python::Function(f)](const StorePtr& store, int rank, int size) {
		python::Locked lock;
		mismatch.store = store;
		mismatch.group_rank = rank;
		mismatch.group_size = size;
		return explain.text();
	};
}

void gompi_torch_mismatch(Options* to) { *to = std::exchange(mismatch, {}); }

// Has a function say where Python's code stands that waits.
void gompi_torch_find_places(python::Object f) {
	Interruptible::here_in_python = [find = python::Function(f)] { return find.text(); };
}

// Says whether the program has signal handlers of its own.
void gompi_torch_calls_handlers(bool does) { Interruptible::callsHandlers = does; }

// A number for a place of the program, 0 where calls are not counted.
int gompi_torch_place(const char* name) {
	return forPython([&] {
		int place;
		check(gompi_place(name, &place));
		return place;
	});
}

// Has a function say by which number the place goes that calls a collective.
void gompi_torch_number_places(python::Object f) {
	Interruptible::numberOfPlace = [find = python::Function(f)] { return find.number(); };
}

// Ends the job.
void gompi_torch_abort(int status, const char* why) {
	forPython([&] { gompi_abort(status, why); });
}

// Waits until some rank has ended, or the launcher ends this one, but no longer than the limit;
// returns how one has ended.
const char* gompi_torch_await_end(int64_t limit) {
	thread_local std::string how;
	how = forPython([&] { return awaitEnd(Milliseconds(limit)); });
	return how.c_str();
}

// Leaves all groups, as the process ends.
void gompi_torch_leave_groups() { forPython(leaveGroups); }

void gompi_torch_waits_for_next(bool does) { Queue::waitsForNext(does); }
void gompi_torch_enter_heap() { heap::enter(); }
void gompi_torch_leave_heap() { heap::leave(); }
int64_t gompi_torch_heap_tensors() { return heap::tensors(); }
}
