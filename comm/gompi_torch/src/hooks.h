// Who wants to be told how the works of a group end, as the flight recorder of torch >= 2.15 does.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace gompi_torch {

// A HookTable has functions by their numbers. It calls them with no lock held: they may ask for Python's.
template <typename... Args> class HookTable {
public:
	using Hook = std::function<void(Args...)>;

	void add(int64_t id, Hook hook) {
		std::lock_guard<std::mutex> lock(mutex);
		auto next = std::make_shared<Table>(*hooks);
		(*next)[id] = std::move(hook);
		hooks = next;
	}

	void remove(int64_t id) {
		std::lock_guard<std::mutex> lock(mutex);
		auto next = std::make_shared<Table>(*hooks);
		next->erase(id);
		hooks = next;
	}

	void call(Args... args) {
		std::shared_ptr<const Table> now;
		{
			std::lock_guard<std::mutex> lock(mutex);
			now = hooks;
		}
		for (auto& hook : *now)
			hook.second(args...);
	}

private:
	using Table = std::map<int64_t, Hook>;

	std::mutex mutex;
	std::shared_ptr<const Table> hooks = std::make_shared<Table>();
};

// Hooks are those of one group.
struct Hooks {
	// A work is over, and it was done: its key, and the milliseconds that it took once it was begun.
	HookTable<uint64_t, std::optional<float>> completed;
	// The first collective has failed, by a timeout, a mismatch or a rank that is lost. Its waiters are told next.
	HookTable<> failed;
};

// A key by which hooks know a work. It is never used again.
inline uint64_t newWorkKey() {
	static std::atomic<uint64_t> last{0};
	return ++last;
}

} // namespace gompi_torch
