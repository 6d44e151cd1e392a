#include "headrace/train/reducer.h"

#include <algorithm>

namespace headrace {

Reducer::Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options)
    : collective_(&collective),
      elements_(elements),
      bucket_(std::max<std::int64_t>(1, options.bucket_bytes / static_cast<std::int64_t>(sizeof(float)))),
      sent_(static_cast<std::size_t>(collective.size()), 0) {}

std::int64_t Reducer::filled(int replica, const TensorView& arena, std::int64_t filled, Stream& stream) {
  const std::int64_t& sent = sent_.at(static_cast<std::size_t>(replica));
  if (collective_->size() == 1 || filled - sent >= bucket_) send(replica, arena, filled, stream);
  return sent;
}

void Reducer::finish(int replica, const TensorView& arena, Stream& stream) {
  send(replica, arena, elements_, stream);
  sent_.at(static_cast<std::size_t>(replica)) = 0;
}

void Reducer::send(int replica, const TensorView& arena, std::int64_t end, Stream& stream) {
  std::int64_t& begin = sent_.at(static_cast<std::size_t>(replica));
  if (collective_->size() > 1 && end > begin) {
    collective_->all_reduce_sum(replica, {arena.as<float>() + begin, Shape{end - begin}, DType::kF32}, stream);
  }
  begin = end;
}

}  // namespace headrace
