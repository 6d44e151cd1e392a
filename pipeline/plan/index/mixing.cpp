#include "headrace/pipeline/plan/index/mixing.h"

#include <utility>

#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

__extension__ using Wide = unsigned __int128;

// Uniform below `bound`, to within 2^-64.
std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
  return static_cast<std::uint64_t>(static_cast<Wide>(bits) * bound >> 64);
}

// Divides the `length` positions of which part i has here[i] after the first `cut`. The fractions of all parts
// laid end to end, moved by a random amount, are whole positions where they pass a whole number.
void cut_at(std::uint64_t cut, std::uint64_t length, std::uint64_t random, MixedStretch& stretch) {
  const std::uint64_t moved = below(random, length);
  Wide fractions = moved;
  for (std::size_t i = 0; i < stretch.here.size(); ++i) {
    const Wide share = static_cast<Wide>(stretch.here[i]) * cut;
    const Wide next = fractions + share % length;
    stretch.left[i] = static_cast<std::uint64_t>(share / length + next / length - fractions / length);
    fractions = next;
  }
}

}  // namespace

Mixing::Mixing(std::vector<std::uint64_t> counts, std::uint64_t key) : counts_(std::move(counts)), key_(key) {
  for (std::uint64_t count : counts_) size_ += count;
}

void Mixing::shuffle(std::uint64_t key, MixedStretch& stretch) const {
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < stretch.here.size(); ++i) {
    for (std::uint64_t n = 0; n < stretch.here[i]; ++n) stretch.parts[at++] = static_cast<std::uint32_t>(i);
  }
  Philox random({.seed = key});
  for (std::uint32_t i = at; i > 1; --i) std::swap(stretch.parts[i - 1], stretch.parts[random.below(i)]);
  stretch.left = stretch.before;
  for (std::uint32_t i = 0; i < at; ++i) stretch.positions[i] = stretch.left[stretch.parts[i]]++;
}

void Mixing::find_stretch(std::uint64_t pass, std::uint64_t position, MixedStretch& stretch) const {
  stretch.before.assign(counts_.size(), 0);
  stretch.left.assign(counts_.size(), 0);
  stretch.here = counts_;
  std::uint64_t first = 0, length = size_;
  const std::uint64_t pass_key = mix_seed(key_, pass);
  const auto key_of = [&] { return mix_seed(mix_seed(pass_key, first), length); };
  while (length > MixedStretch::kLength) {
    const std::uint64_t cut = length / 2;
    cut_at(cut, length, key_of(), stretch);
    const bool goes_left = position < first + cut;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (!goes_left) stretch.before[i] += stretch.left[i];
      stretch.here[i] = goes_left ? stretch.left[i] : stretch.here[i] - stretch.left[i];
    }
    if (!goes_left) first += cut;
    length = goes_left ? cut : length - cut;
  }
  shuffle(key_of(), stretch);
  stretch.pass = pass;
  stretch.first = first;
  stretch.length = length;
}

Share Mixing::locate(std::uint64_t pass, std::uint64_t position, MixedStretch& stretch) const {
  if (stretch.length == 0 || stretch.pass != pass || position < stretch.first ||
      position - stretch.first >= stretch.length) {
    find_stretch(pass, position, stretch);
  }
  const auto at = static_cast<std::size_t>(position - stretch.first);
  return {.part = stretch.parts[at], .position = stretch.positions[at]};
}

}  // namespace headrace
