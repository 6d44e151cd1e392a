// Memory of the host beside a GPU. Private to the CUDA backend.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace headrace {

// Pages that the calling thread touches first come from this NUMA node where it has any left, until the end of the
// scope: a GPU reads those of its own socket faster. Changes nothing for a negative node, nor where the system does
// not allow it.
class OnHostNode {
 public:
  explicit OnHostNode(int node) {
    if (node < 0 || node >= kNodes) return;
    if (syscall(SYS_get_mempolicy, &mode_, nodes_.data(), kNodes, nullptr, 0) != 0) return;
    Nodes wanted{};
    wanted[static_cast<std::size_t>(node) / kWord] = 1UL << static_cast<unsigned>(node) % kWord;
    changed_ = syscall(SYS_set_mempolicy, kPreferred, wanted.data(), kNodes) == 0;
  }
  ~OnHostNode() {
    if (changed_) syscall(SYS_set_mempolicy, mode_, nodes_.data(), kNodes);
  }
  OnHostNode(const OnHostNode&) = delete;
  OnHostNode& operator=(const OnHostNode&) = delete;

  static constexpr int kPreferred = 1;  // MPOL_PREFERRED of <linux/mempolicy.h>, which libnuma's headers hide

 private:
  static constexpr unsigned kWord = 8 * sizeof(unsigned long);
  static constexpr int kNodes = 1024;  // as many as Linux can have
  using Nodes = std::array<unsigned long, kNodes / kWord>;

  int mode_ = 0;
  Nodes nodes_{};
  bool changed_ = false;
};

}  // namespace headrace
