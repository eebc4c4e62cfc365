// What is asked of any store of torch's.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gompi_torch {

inline void set(c10d::Store& store, const std::string& key, const std::string& value) {
	store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

inline std::string get(c10d::Store& store, const std::string& key) {
	auto said = store.get(key);
	return std::string(said.begin(), said.end());
}

// Waits until the keys are there, for so long, and reports whether they are.
inline bool comes(c10d::Store& store, const std::vector<std::string>& keys, std::chrono::milliseconds time) {
	try {
		store.wait(keys, time);
		return true;
	} catch (std::exception&) {
		return false;
	}
}

} // namespace gompi_torch
