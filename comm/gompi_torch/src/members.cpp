#include "members.h"

#include <string>
#include <typeinfo>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "fail.h"
#include "keys.h"

namespace gompi_torch {

namespace {

// Waits for the word by which it ends, and returns "" if it has not come within the limit.
std::string awaitWord(c10d::Store& store, std::chrono::milliseconds limit) {
	const auto deadline = std::chrono::steady_clock::now() + limit;
	try {
		store.wait({"end"}, limit);
	} catch (std::exception&) {
		if (std::chrono::steady_clock::now() < deadline)
			throw; // the store is gone
		return "";
	}
	return get(store, "end");
}

std::string missing(c10d::Store& store, const std::vector<int>& members) {
	std::vector<std::string> all;
	for (size_t i = 0; i < members.size(); i++)
		if (!store.check({std::to_string(i)}))
			all.push_back(std::to_string(members[i]));
	return words(all);
}

// Whether store is more than the name of one: for a group of "mpi" torch has a c10d::Store of
// Python that lacks all functions.
bool isThere(c10::intrusive_ptr<c10d::Store> store) {
	while (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store.get()))
		store = prefixed->getUnderlyingStore();
	const c10d::Store& base = *store;
	return std::string(typeid(base).name()).find("PythonStore") == std::string::npos;
}

} // namespace

void awaitMembers(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& members, int me, std::chrono::milliseconds limit) {
	const int size = static_cast<int>(members.size());
	if (size < 2 || limit.count() < 0 || !isThere(store)) // such a limit is refused where it is set
		return;
	const std::string prefix = "gompi_members";
	// The same name may be that of a group after this one: each has its own keys.
	const int64_t came = c10d::PrefixStore(prefix, store).add("number", 1) - 1;
	c10d::PrefixStore common(prefix + std::to_string(came / size), store);
	// The last member, and members whose time is over, say how it ends. The store takes the first
	// word, so all members have the same one. TCPStore's compareSet wakes no waiting member, its set
	// does (torch 1.13).
	auto end = [&](const std::string& word) {
		auto first = common.compareSet("word", {}, std::vector<uint8_t>(word.begin(), word.end()));
		common.set("end", first);
		return std::string(first.begin(), first.end());
	};
	const std::string all = "all";
	set(common, std::to_string(me), "");
	auto word = came % size == size - 1 ? end(all) : awaitWord(common, limit);
	if (word.empty())
		word = end("Timed out waiting for rank " + missing(common, members) + " to make a group of " + std::to_string(size) +
		           ": not there after " + std::to_string(limit.count()) + " ms");
	if (word != all)
		fail(word);
}

} // namespace gompi_torch
