#include <gmock/gmock.h>

#include "headrace/devices/cuda/cuda_math.h"

namespace headrace::cuda {
namespace {

TEST(LibraryHint, NamesThePackageOfWhatTheLinkerLacked) {
  EXPECT_THAT(library_hint("libcudnn.so.9: cannot open shared object file: No such file or directory"),
              ::testing::HasSubstr("pip install nvidia-cudnn-cu13"));
  EXPECT_THAT(library_hint("libnccl.so.2: cannot open shared object file"),
              ::testing::HasSubstr("pip install nvidia-nccl-cu13"));
  EXPECT_THAT(library_hint("libcublasLt.so.13: cannot open shared object file"),
              ::testing::HasSubstr("LD_LIBRARY_PATH"));
}

TEST(LibraryHint, IsSilentAboutOthers) {
  EXPECT_EQ(library_hint("libfmt.so.9: cannot open shared object file"), "");
  EXPECT_EQ(library_hint(""), "");
}

}  // namespace
}  // namespace headrace::cuda
