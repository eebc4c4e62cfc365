// Hooks are told when works of a group are done: the flight recorder of torch >= 2.15 has one.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace gompi_torch {

// Hooks are functions by their numbers. They are called with no lock held: they may ask for Python's.
class Hooks {
public:
	// Gets the key of a work, and the milliseconds that it took once it was begun.
	using Hook = std::function<void(uint64_t, std::optional<float>)>;

	void add(int64_t id, Hook hook) {
		change([&](Table& hooks) { hooks[id] = std::move(hook); });
	}

	void remove(int64_t id) {
		change([&](Table& hooks) { hooks.erase(id); });
	}

	void call(uint64_t key, std::optional<float> milliseconds) {
		std::shared_ptr<const Table> now;
		{
			std::lock_guard<std::mutex> lock(mutex);
			now = hooks;
		}
		for (auto& hook : *now)
			hook.second(key, milliseconds);
	}

	// A key by which hooks know a work. It is never used again.
	static uint64_t newKey() {
		static std::atomic<uint64_t> last{0};
		return ++last;
	}

private:
	using Table = std::map<int64_t, Hook>;

	template <typename Change> void change(Change change) {
		std::lock_guard<std::mutex> lock(mutex);
		auto next = std::make_shared<Table>(*hooks);
		change(*next);
		hooks = next;
	}

	std::mutex mutex;
	std::shared_ptr<const Table> hooks = std::make_shared<Table>();
};

} // namespace gompi_torch
