#include "headrace/train/records/record.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// A tensor of the file and its place on each replica.
struct LoadTarget {
  const StoredTensor* from = nullptr;
  std::vector<std::byte*> places = {};
};

// One block of such a tensor.
struct BlockToLoad {
  const LoadTarget* target = nullptr;
  std::size_t block = 0;

  std::size_t bytes() const { return target->from->block_bytes(block); }
  std::byte* place(std::size_t replica) const { return target->places[replica] + block * kTensorBlock; }
};

std::vector<NamedView> views_of(const ModelState& model, int replica, LoadedPart part) {
  std::vector<NamedView> views;
  for (const Variable& variable : model.layout.variables()) {
    views.push_back({.name = variable.name, .view = model.variables.view(variable, replica)});
  }
  if (part == LoadedPart::kVariables) return views;
  for (NamedView& kept : optimizer_views(model, replica)) views.push_back(std::move(kept));
  return views;
}

const StoredTensor* stored_for(const TensorFile& file, const NamedView& wanted) {
  const StoredTensor* found = file.find(wanted.name);
  const auto refuse = [&](const std::string& why) {
    throw DataError(ErrorCode::kInvalidArgument, why, {.source = file.path().string()},
                    "load it into the model that it was saved from, with the same optimizer");
  };
  if (found == nullptr) refuse(fmt::format("has no tensor '{}', which the model needs", wanted.name));
  if (!(found->shape == wanted.view.shape) || found->dtype != wanted.view.dtype) {
    refuse(fmt::format("tensor '{}' is {} of shape {}, the model needs {} of {}", wanted.name,
                       to_string(found->dtype), found->shape.to_string(), to_string(wanted.view.dtype),
                       wanted.view.shape.to_string()));
  }
  return found;
}

std::vector<LoadTarget> targets_of(const TensorFile& file, const ModelState& model, LoadedPart part) {
  std::vector<LoadTarget> targets;
  for (int r = 0; r < model.strategy->local_replicas(); ++r) {
    const std::vector<NamedView> views = views_of(model, r, part);
    targets.resize(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (r == 0 && views[i].view.bytes() > 0) targets[i].from = stored_for(file, views[i]);
      targets[i].places.push_back(views[i].view.as<std::byte>());
    }
  }
  std::erase_if(targets, [](const LoadTarget& target) { return target.from == nullptr; });
  return targets;
}

std::vector<BlockToLoad> blocks_of(const std::vector<LoadTarget>& targets) {
  std::vector<BlockToLoad> blocks;
  for (const LoadTarget& target : targets) {
    for (std::size_t block = 0; block < target.from->blocks(); ++block) {
      blocks.push_back({.target = &target, .block = block});
    }
  }
  return blocks;
}

// Returns a range of blocks for each reader, of about equal bytes.
std::vector<std::span<const BlockToLoad>> shared_out(const std::vector<BlockToLoad>& blocks, std::size_t readers) {
  std::size_t all = 0;
  for (const BlockToLoad& block : blocks) all += block.bytes();
  std::vector<std::span<const BlockToLoad>> shares;
  std::size_t begin = 0, end = 0, done = 0;
  for (std::size_t reader = 1; reader <= readers; ++reader) {
    while (end < blocks.size() && (reader == readers || done < all / readers * reader))
      done += blocks[end++].bytes();
    shares.push_back(std::span(blocks).subspan(begin, end - begin));
    begin = end;
  }
  return shares;
}

// Reads into the reader's own replica and copies from there, while in the cache, to the others.
void load_in_place(const TensorFile& file, std::span<const BlockToLoad> blocks, std::size_t reader,
                   std::size_t local_replicas) {
  for (const BlockToLoad& block : blocks) {
    file.read_block(*block.target->from, block.block, {block.place(reader), block.bytes()});
    for (std::size_t r = 0; r < local_replicas; ++r) {
      if (r != reader) std::memcpy(block.place(r), block.place(reader), block.bytes());
    }
  }
}

// Reads into pinned memory that devices copy from.
void load_staged(const TensorFile& file, std::span<const BlockToLoad> blocks, std::byte* staging) {
  for (const BlockToLoad& block : blocks) {
    file.read_block(*block.target->from, block.block, {staging, block.bytes()});
    staging += block.bytes();
  }
}

// Calls work(reader) in one thread per reader; throws the first error.
template <typename Work>
void read_together(std::size_t readers, const Work& work) {
  FirstError error;
  std::vector<std::thread> threads;
  for (std::size_t reader = 0; reader < readers; ++reader) {
    threads.emplace_back([&, reader] {
      try {
        work(reader);
      } catch (...) {
        error.note(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  error.raise();
}

void load_through_pinned(const TensorFile& file, const ModelState& model,
                         const std::vector<std::span<const BlockToLoad>>& shares) {
  std::vector<Buffer> staging;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    std::size_t bytes = 1;
    for (const BlockToLoad& block : shares[r]) bytes += block.bytes();
    staging.push_back(model.strategy->device(static_cast<int>(r)).allocate_pinned(bytes));
  }
  read_together(shares.size(), [&](std::size_t r) { load_staged(file, shares[r], staging[r].data()); });
  submit_and_wait(*model.strategy, [&] {
    for (std::size_t share = 0; share < shares.size(); ++share) {
      const std::byte* from = staging[share].data();
      for (const BlockToLoad& block : shares[share]) {
        for (std::size_t r = 0; r < shares.size(); ++r) {
          model.strategy->stream(static_cast<int>(r)).copy(block.place(r), from, block.bytes());
        }
        from += block.bytes();
      }
    }
  });
}

// Sets lookahead's and the average's weights to the variables until training continues.
void follow_weights(const ModelState& model) {
  submit_and_wait(*model.strategy, [&] {
    for (int r = 0; r < model.strategy->local_replicas() && !model.optimizer.empty(); ++r) {
      const OptimizerMemory& memory = model.optimizer[static_cast<std::size_t>(r)];
      const TensorView parameters = model.variables.parameters(r);
      for (const Buffer* weights : {&memory.slow, &memory.average}) {
        if (*weights) model.strategy->stream(r).copy(weights->data(), parameters.data, parameters.bytes());
      }
    }
  });
}

}  // namespace

void load_variables(const TensorFile& file, ModelState& model, LoadedPart part) {
  model.strategy->synchronize();
  const std::vector<LoadTarget> targets = targets_of(file, model, part);
  const std::vector<BlockToLoad> blocks = blocks_of(targets);
  const auto local_replicas = static_cast<std::size_t>(model.strategy->local_replicas());
  const std::vector<std::span<const BlockToLoad>> shares = shared_out(blocks, local_replicas);
  if (model.strategy->device(0).info().host_memory) {
    read_together(local_replicas, [&](std::size_t r) { load_in_place(file, shares[r], r, local_replicas); });
  } else {
    load_through_pinned(file, model, shares);
  }
  model.variables.round_again();
  if (part == LoadedPart::kVariables) follow_weights(model);
}

}  // namespace headrace
