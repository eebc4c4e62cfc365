// Errors.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/ATen.h>

namespace gompi_torch {

// What a part of an error is in words.
inline std::string words(const char* s) { return s; }
inline std::string words(const std::string& s) { return s; }
inline std::string words(at::ScalarType t) { return c10::toString(t); }
template <typename Number, typename = std::enable_if_t<std::is_arithmetic<Number>::value>>
std::string words(Number n) { return std::to_string(n); }
inline std::string words(at::IntArrayRef all) {
	std::string s = "[";
	for (size_t i = 0; i < all.size(); i++)
		s += (i ? ", " : "") + std::to_string(all[i]);
	return s + "]";
}
inline std::string words(const std::vector<std::string>& all) {
	std::string s;
	for (auto& w : all)
		s += (s.empty() ? "" : ", ") + w;
	return s;
}

// Throws an error of these parts. TORCH_CHECK is not for this module: it writes numbers to a
// stream, and the parts of one come from several libraries. torch's wheels have copies of some
// functions of libstdc++, its stream's constructor among them, and libstdc++ of this machine has
// the others. On one machine every TORCH_CHECK of this module ended with SIGSEGV.
template <typename... Parts> [[noreturn]] void fail(const Parts&... parts) {
	std::string s = "gompi: ";
	(s += ... += words(parts));
	throw std::runtime_error(s);
}

} // namespace gompi_torch
