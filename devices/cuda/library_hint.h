// How to get a library that the dynamic linker did not find. Plain C++. Private to the CUDA backend.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace headrace::cuda {

// `reason` is the dynamic linker's, which names the first library that it lacked. Empty where it names none of
// NVIDIA's.
inline std::string library_hint(std::string_view reason) {
  struct Library {
    std::string_view file, package;
  };
  static constexpr std::array<Library, 3> kLibraries{
      {{"libcudnn", "nvidia-cudnn-cu13"}, {"libcublas", "nvidia-cublas"}, {"libnccl", "nvidia-nccl-cu13"}}};
  for (const Library& library : kLibraries) {
    if (reason.find(library.file) == std::string_view::npos) continue;
    return "install it from NVIDIA's packages or with `pip install " + std::string(library.package) +
           "`, and name its folder in LD_LIBRARY_PATH";
  }
  return {};
}

}  // namespace headrace::cuda
