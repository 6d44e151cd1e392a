#include "headrace/tests/support/fake_cuda/nccl_world.h"

#include <algorithm>
#include <cstring>

namespace headrace::test::fake_nccl {
namespace {

// From the last rank to the first: NCCL's order is another one than the tree's.
void sum(std::map<int, Part>& parts) {
  const std::size_t count = parts.begin()->second.bytes / sizeof(float);
  std::vector<float> total(count);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    for (std::size_t i = 0; i < count; ++i) total[i] += part->second.values[i];
  }
  for (auto& [rank, part] : parts) std::memcpy(part.values, total.data(), part.bytes);
}

void broadcast(std::map<int, Part>& parts) {
  const Part& root = parts.at(parts.begin()->second.root);
  for (auto& [rank, part] : parts) {
    if (part.values != root.values) std::memcpy(part.values, root.values, part.bytes);
  }
}

}  // namespace

std::string World::join(ncclComm& member, int ranks) {
  if (ranks != ranks_) return "a world of several sizes";
  if (std::ranges::count(members_, member.rank, &ncclComm::rank) > 0) return "two members of one rank";
  members_.push_back(&member);
  return {};
}

bool World::has_ended() const {
  return std::ranges::all_of(members_, [](const ncclComm* member) { return member->finalized || member->gone; });
}

void World::post(int call, int rank, const Part& part) {
  std::map<int, Part>& parts = calls_[call];
  parts[rank] = part;
  if (static_cast<int>(parts.size()) < ranks_) return;
  const Part& first = parts.begin()->second;
  const bool agreed = std::ranges::all_of(
      parts, [&](const auto& each) { return each.second.bytes == first.bytes && each.second.root == first.root; });
  if (!agreed) misuses_.emplace_back("ranks that make different calls");
  if (agreed) first.root < 0 ? sum(parts) : broadcast(parts);
  calls_.erase(call);
  done_[call] = true;
}

std::optional<std::vector<std::byte>> World::receive(int from, int to) {
  auto& letters = mail_[{from, to}];
  if (letters.empty()) return std::nullopt;
  std::vector<std::byte> first = std::move(letters.front());
  letters.pop_front();
  return first;
}

}  // namespace headrace::test::fake_nccl
