// Who a rank is in a group, for errors.
#pragma once

#include <memory>
#include <string>

namespace gompi_torch {

struct Member {
	std::string group; // as torch calls it
	int rank, size;
};
using MemberPtr = std::shared_ptr<const Member>;

inline std::string words(const MemberPtr& m) {
	return "rank " + std::to_string(m->rank) + " in group " + m->group + " (" + std::to_string(m->size) + " ranks)";
}

} // namespace gompi_torch
