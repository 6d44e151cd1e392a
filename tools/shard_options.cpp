#include "headrace/tools/shard_options.h"

#include "headrace/devices/kernels.h"
#include "headrace/tools/options.h"

namespace headrace::tools {
namespace {

constexpr int kUsualShards = 8;

}  // namespace

void ShardOptions::add_to(CLI::App& command) {
  command.add_flag("--deterministic", deterministic,
                   "the same result with 1, 2, 4 or 8 replicas: each batch is divided into 8 virtual shards");
  add_number(command, "--virtual-shards", virtual_shards,
             "the same with this many shards, a power of two: the maximum number of replicas",
             {.min = 1, .max = Kernels::kMaxSummed});
}

int ShardOptions::count() const noexcept {
  if (virtual_shards > 0) return static_cast<int>(virtual_shards);
  return deterministic ? kUsualShards : 0;
}

}  // namespace headrace::tools
