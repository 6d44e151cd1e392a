#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {

// Each in the file of its stage.
StageCall batch_call();
StageCall bucket_by_length_call();
StageCall cache_call();
StageCall decode_call();
StageCall enumerate_call();
StageCall filter_call();
StageCall map_call();
StageCall padded_batch_call();
StageCall prefetch_call();
StageCall ragged_batch_call();
StageCall repeat_call();
StageCall select_call();
StageCall shard_call();
StageCall shard_for_worker_call();
StageCall shuffle_call();
StageCall shuffle_blocks_call();
StageCall shuffle_shards_call();
StageCall shuffle_window_call();
StageCall skip_call();
StageCall take_call();
StageCall unbatch_call();
StageCall window_call();
StageCall without_shard_call();

const std::vector<StageCall>& stage_calls() {
  static const std::vector<StageCall> calls{
      batch_call(),          bucket_by_length_call(), cache_call(),        decode_call(),
      enumerate_call(),      filter_call(),           map_call(),          padded_batch_call(),
      prefetch_call(),       ragged_batch_call(),     repeat_call(),       select_call(),
      shard_call(),          shard_for_worker_call(), shuffle_call(),      shuffle_blocks_call(),
      shuffle_shards_call(), shuffle_window_call(),   skip_call(),         take_call(),
      unbatch_call(),        window_call(),           without_shard_call()};
  return calls;
}

}  // namespace headrace
