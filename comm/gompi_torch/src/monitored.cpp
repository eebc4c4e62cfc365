#include <algorithm>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "fail.h"
#include "group.h"

namespace gompi_torch {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

void set(c10d::Store& store, const std::string& key, const std::string& value) { store.set(key, std::vector<uint8_t>(value.begin(), value.end())); }

bool comes(c10d::Store& store, const std::string& key, milliseconds time) {
	try {
		store.wait({key}, time);
		return true;
	} catch (std::exception&) {
		return false;
	}
}

// Waits for all ranks but 0. It returns what is wrong, in the words of torch's own, "" if all have come.
std::string awaitAll(c10d::Store& store, int size, milliseconds limit, bool name_all) {
	const auto deadline = Clock::now() + limit;
	const std::string late = " failed to pass monitoredBarrier in " + std::to_string(limit.count()) + " ms";
	std::string missing, came;
	for (int r = 1; r < size; r++) {
		auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
		auto rank = std::to_string(r);
		if (left.count() <= 0 && !name_all)
			return "Rank 0 timed out in monitoredBarrier after " + std::to_string(limit.count()) + " ms.\n Successfully processed ranks: " + came;
		if (comes(store, rank, std::max(left, milliseconds(1))))
			came += (came.empty() ? "" : ", ") + rank;
		else if (!name_all)
			return "[Rank 0]: Rank " + rank + late;
		else
			missing += (missing.empty() ? "" : ", ") + rank;
	}
	return missing.empty() ? "" : "[Rank 0]: Ranks " + missing + late;
}

} // namespace

void Group::monitoredBarrier(const c10d::BarrierOptions& o, bool waitAllRanks) {
	const auto limit = o.timeout == c10d::kUnsetTimeout ? timeout.load() : o.timeout;
	auto shared = c10::make_intrusive<c10d::PrefixStore>("monitored_barrier/" + std::to_string(++monitored), store);
	auto& common = *shared;
	std::string why;
	if (rank_ == 0) {
		why = awaitAll(common, size_, limit, waitAllRanks);
		set(common, "end", why);
	} else {
		set(common, std::to_string(rank_), "");
		if (!comes(common, "end", limit + std::chrono::seconds(10))) // rank 0 says when the time is over
			why = "nothing came from rank 0";
		else if (auto said = common.get("end"); !said.empty())
			why.assign(said.begin(), said.end());
		if (!why.empty())
			why = "Rank " + std::to_string(rank_) + " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
			      "Please check rank 0 logs for faulty rank.\n Original exception: \n" + why;
	}
	if (!why.empty())
		fail(why);
}

} // namespace gompi_torch
