// Putting a finished snapshot somewhere else as cheaply as is safe.
#pragma once

#include <filesystem>

namespace kerncap::snapshot {

enum class Transfer {
  copy,  // `from` stays as it is and shares no file with the copy: data is shared by the file system where it can
         // (reflink: a later change of one is not seen in the other), else copied
  take,  // `from` is the caller's own and is gone afterwards: renamed, across file systems copied and then removed
};

// `to` must not exist; its parent must. After an Error{environment} (a full disk) `from` is whole, and `to` may be
// unfinished: give a folder that is thrown away. Thread-safety: none.
void place(const std::filesystem::path& from, const std::filesystem::path& to, Transfer transfer);

}  // namespace kerncap::snapshot
