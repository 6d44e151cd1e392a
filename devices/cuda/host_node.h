// The NUMA node of host memory that a GPU reads. Private to the CUDA backend.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace headrace {

// Prefers this NUMA node for pages that the calling thread touches first, until the end of the scope: a GPU reads
// memory of its own socket faster. Does nothing if the node is negative, if the thread has a policy already, as
// under numactl, or if the system does not permit it.
class OnHostNode {
 public:
  explicit OnHostNode(int node) {
    if (node < 0 || node >= kNodes) return;
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) != 0 || mode != kDefault) return;
    std::array<unsigned long, kNodes / kWord> wanted{};
    wanted[static_cast<std::size_t>(node) / kWord] = 1UL << static_cast<unsigned>(node) % kWord;
    changed_ = syscall(SYS_set_mempolicy, long{kPreferred}, wanted.data(), kNodes + 1UL) == 0;
  }
  ~OnHostNode() {
    if (changed_) syscall(SYS_set_mempolicy, long{kDefault}, nullptr, 0UL);
  }
  OnHostNode(const OnHostNode&) = delete;
  OnHostNode& operator=(const OnHostNode&) = delete;

  static constexpr int kDefault = 0, kPreferred = 1;  // MPOL_DEFAULT and MPOL_PREFERRED of <linux/mempolicy.h>

 private:
  static constexpr unsigned kWord = 8 * sizeof(unsigned long);
  static constexpr int kNodes = 1024;  // as many as Linux can have

  bool changed_ = false;
};

}  // namespace headrace
