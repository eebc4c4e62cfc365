// How a rank leaves its job when its process ends.
#pragma once

#include <chrono>
#include <string>

namespace gompi_torch {

// Has this process leave the job when it exits with status 0. With another status it has failed:
// its launcher sees that, and nothing is waited for.
void leaveAtExit();

// Has the ranks hear of each other's ends by awaitEnd. All ranks call it.
void watchEnds();
// Blocks until a rank has ended, with whatever status, but no longer than the limit. It returns how.
std::string awaitEnd(std::chrono::milliseconds limit);

// Leaves all groups, so that ranks that wait for this one are told. It returns when the callbacks
// of all futures have run, as they may be Python's, which ends next.
void leaveGroups();

} // namespace gompi_torch
