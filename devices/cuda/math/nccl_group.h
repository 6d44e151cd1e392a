// Calls that NCCL makes together. Private to the CUDA backend.
#pragma once

#include <nccl.h>

namespace headrace {

// From here to end(), or the end of the scope, the calling thread's NCCL calls are one group; it is ended also
// where an error leaves it.
class NcclGroup {
 public:
  NcclGroup() noexcept : status_(ncclGroupStart()) {}
  ~NcclGroup() { end(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // The first status that is an error, of the group's start, of `calls` and of its end; else the end's.
  ncclResult_t end(ncclResult_t calls = ncclSuccess) noexcept;

 private:
  ncclResult_t status_;
  bool open_ = true;
};

}  // namespace headrace
