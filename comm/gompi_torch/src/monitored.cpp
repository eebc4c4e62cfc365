#include <algorithm>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "fail.h"
#include "group.h"
#include "keys.h"

namespace gompi_torch {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Waits for all ranks but 0, and adds the ranks that come. It returns an error's text, in torch's
// own words, "" if all have come.
std::string awaitAll(c10d::Store& store, int size, milliseconds limit, bool name_all, std::vector<std::string>& came) {
	const auto deadline = Clock::now() + limit;
	const std::string late = " failed to pass monitoredBarrier in " + std::to_string(limit.count()) + " ms";
	std::vector<std::string> missing;
	for (int r = 1; r < size; r++) {
		auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
		auto rank = std::to_string(r);
		if (left.count() <= 0 && !name_all)
			return "Rank 0 timed out in monitoredBarrier after " + std::to_string(limit.count()) + " ms.\n Successfully processed ranks: " + words(came);
		if (comes(store, {rank}, std::max(left, milliseconds(1))))
			came.push_back(rank);
		else if (!name_all)
			return "[Rank 0]: Rank " + rank + late;
		else
			missing.push_back(rank);
	}
	return missing.empty() ? "" : "[Rank 0]: Ranks " + words(missing) + late;
}

} // namespace

void Group::monitoredBarrier(const c10d::BarrierOptions& o, bool waitAllRanks) {
	const auto limit = o.timeout == c10d::kUnsetTimeout ? timeout->load() : o.timeout;
	auto shared = c10::make_intrusive<c10d::PrefixStore>("monitored_barrier/" + std::to_string(++monitored), store);
	auto& common = *shared;
	const auto slack = std::chrono::seconds(10); // for rank 0 to say that the time is over, and the others to hear it
	const std::string knows = " knows";
	std::string why;
	if (rank_ == 0) {
		std::vector<std::string> came;
		why = awaitAll(common, size_, limit, waitAllRanks, came);
		set(common, "end", why);
		for (auto& rank : came)
			rank += knows;
		comes(common, came, slack); // this rank may end then, and torch's store with it
	} else {
		set(common, std::to_string(rank_), "");
		if (!comes(common, {"end"}, limit + slack)) {
			why = "nothing came from rank 0";
		} else {
			why = get(common, "end");
			set(common, std::to_string(rank_) + knows, "");
		}
		if (!why.empty())
			why = "Rank " + std::to_string(rank_) + " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
			      "Please check rank 0 logs for faulty rank.\n Original exception: \n" + why;
	}
	if (!why.empty())
		fail(why);
}

} // namespace gompi_torch
