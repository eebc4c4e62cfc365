// gompi_torch._C: what the Python side of gompi_torch uses.
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <numeric>

#include <pybind11/chrono.h>

#include "ending.h"
#include "group.h"
#include "heap.h"
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

std::atomic<bool> joined{false};

// A limit that gompi takes: 0 is none, and its clock has nanoseconds.
int64_t limitOf(std::chrono::milliseconds time) { return std::clamp<int64_t>(time.count(), 0, INT64_MAX / 1000000); }

std::pair<int, int> join(std::chrono::milliseconds time) {
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

c10::intrusive_ptr<GroupBase> worldGroup(const std::string& name, const StorePtr& store, std::chrono::milliseconds timeout) {
	auto [rank, size] = join(timeout);
	std::vector<int> members(size);
	std::iota(members.begin(), members.end(), 0);
	awaitMembers(store, members, rank, timeout);
	watchEnds();
	heap::open();
	return c10::make_intrusive<Group>(world(), name, rank, size, store, timeout);
}

// A group of some ranks, which alone call it, with the same tag.
c10::intrusive_ptr<GroupBase> group(const std::string& name, const std::vector<int>& ranks, int rank, int tag, const StorePtr& store, std::chrono::milliseconds timeout) {
	gompi_comm c;
	awaitMembers(store, ranks, rank, timeout);
	check(gompi_create_group(GOMPI_WORLD, ranks.data(), ranks.size(), tag, &c));
	return c10::make_intrusive<Group>(Communicator(c), name, rank, static_cast<int>(ranks.size()), store, timeout);
}

// A store of all ranks. A rank that does not come is waited for as long as the limit says, and then
// no group can be made any more.
c10::intrusive_ptr<c10d::Store> store(std::chrono::milliseconds time) {
	auto [rank, size] = join(time);
	check(gompi_set_timeout(GOMPI_WORLD, limitOf(time)));
	auto c = world();
	check(gompi_set_timeout(GOMPI_WORLD, 0));
	check(gompi_hide(c.get()));
	return c10::make_intrusive<Store>(std::move(c), rank, size);
}

} // namespace

} // namespace gompi_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
	using namespace gompi_torch;
	py::call_guard<py::gil_scoped_release> blocks;
	m.def("join", &join, blocks, py::arg("limit") = std::chrono::milliseconds(0), "Joins the job, once, for which it waits for so long at most, if not 0; returns this rank and their number.");
	m.def("joined", [] { return joined.load(); }, "Whether join has been called.");
	m.def("world_group", &worldGroup, blocks, "A group of all ranks, which all call it.");
	m.def("group", &group, blocks, "A group of some ranks, which all of them call, with the same tag.");
	m.def("store", &store, blocks, "A store of all ranks, which all call it within the limit.");
	m.def("explain_mismatches", [](py::function explain) {
		explain.inc_ref(); // it is used until the process ends
		explainMismatch = [f = explain.ptr()](const StorePtr& store, int rank, int size) {
			py::gil_scoped_acquire lock;
			return py::cast<std::string>(py::handle(f)(store, rank, size));
		};
	}, "Has a function say where ranks that called different collectives are.");
	m.def("find_places", [](py::function find) {
		find.inc_ref(); // as above
		Interruptible::here_in_python = [f = find.ptr()] { return py::cast<std::string>(py::handle(f)()); };
	}, "Has a function say where Python's code stands that waits.");
	m.def("calls_handlers", [](bool does) { Interruptible::callsHandlers = does; }, "Says whether the program has signal handlers of its own.");
	m.def("place", [](const std::string& name) {
		int place;
		check(gompi_place(name.c_str(), &place));
		return place;
	}, "A number for a place of the program, 0 where calls are not counted.");
	m.def("number_places", [](py::function find) {
		find.inc_ref(); // as above
		Interruptible::numberOfPlace = [f = find.ptr()] { return py::cast<int>(py::handle(f)()); };
	}, "Has a function say by which number the place goes that calls a collective.");
	m.def("abort", [](int status, const std::string& why) { gompi_abort(status, why.c_str()); }, blocks, "Ends the job.");
	m.def("await_end", &awaitEnd, blocks, "Waits until some rank has ended, or the launcher ends this one, but no longer than the limit; returns how one has ended.");
	m.def("leave_groups", &leaveGroups, blocks, "Leaves all groups, as the process ends.");
	m.def("waits_for_next", &Queue::waitsForNext);
	m.def("enter_heap", &heap::enter);
	m.def("leave_heap", &heap::leave);
	m.def("heap_tensors", &heap::tensors);
}
