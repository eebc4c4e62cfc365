// How a rank leaves its job when its process ends.
#pragma once

namespace gompi_torch {

// Has this process leave the job when it exits with status 0. With another status it has failed: its
// launcher sees that, and nothing is waited for.
void leaveAtExit();

// Leaves all groups, so that ranks that wait for this one are told. It returns when the callbacks of all
// futures have run, as they may be Python's, which ends next.
void leaveGroups();

} // namespace gompi_torch
