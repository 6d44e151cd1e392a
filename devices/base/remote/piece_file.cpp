#include "headrace/devices/base/remote/piece_file.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"

namespace headrace::remote {
namespace {

constexpr std::uint64_t kMagic = 0x3130'6563'6569'7068;  // "hpiece01" on a little-endian machine
constexpr std::uint64_t kHeaderBytes = 4096;
constexpr std::uint64_t kBytesPerSlot = 16 << 10;  // files smaller than this fill the table before the budget
constexpr std::uint64_t kProbes = 64;
constexpr int kSizeBits = 20;
constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kSizeBits) - 1;
constexpr std::uint32_t kClaimSeconds = 6, kNoteSeconds = 3600;

struct PieceHeader {
  std::uint64_t magic, slots, end;  // end: of the file once it is full
  std::uint64_t check;              // XXH3 of those before
  std::uint64_t used;               // the end of all places that were given away
};

std::uint64_t check_of(const PieceHeader& header) {
  return xxh3(std::as_bytes(std::span(&header, 1)).first(offsetof(PieceHeader, check)));
}

std::uint64_t table_end(std::uint64_t slots) { return kHeaderBytes + slots * sizeof(PieceSlot); }

std::atomic_ref<std::uint64_t> shared(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word));
}

// Of a claim: the seconds since the machine's start, the process and the space in which its number is one.

constexpr std::uint64_t kFreeState = 0, kStoredState = 1;
constexpr int kSpaceBits = 10, kProcessBits = 22;

std::uint32_t seconds_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint32_t>(now.tv_sec) + 1;
}

std::uint64_t space_of_processes() noexcept {
  static const std::uint64_t space = [] {
    try {
      return (identity_of("/proc/self/ns/pid").inode * 0x9E37'79B9'7F4A'7C15) >> (64 - kSpaceBits);
    } catch (const DataError&) {
      return std::uint64_t{0};
    }
  }();
  return space;
}

std::uint64_t claim_now() noexcept {
  const std::uint64_t process = static_cast<std::uint64_t>(::getpid()) & ((1U << kProcessBits) - 1);
  return std::uint64_t{seconds_now()} << 32 | space_of_processes() << kProcessBits | process;
}

bool is_abandoned(std::uint64_t state) noexcept {
  const auto since = static_cast<std::uint32_t>(state >> 32), now = seconds_now();
  if (since > now || now - since > kClaimSeconds) return true;
  if ((state >> kProcessBits & ((1U << kSpaceBits) - 1)) != space_of_processes()) return false;
  const auto process = static_cast<pid_t>(state & ((1U << kProcessBits) - 1));
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

[[noreturn]] void refuse_pieces(const std::filesystem::path& path, const std::string& why) {
  throw DataError(ErrorCode::kDataCorrupt, why, {.source = path.string()}, "remove it");
}

}  // namespace

void PieceFile::create(const std::filesystem::path& path, std::uint64_t bytes) {
  PieceHeader header{
      .magic = kMagic, .slots = std::bit_ceil(bytes / kBytesPerSlot), .end = bytes, .check = 0, .used = 0};
  header.used = table_end(header.slots);
  header.check = check_of(header);
  MappedFile::create(path, std::as_bytes(std::span(&header, 1)), header.used);
}

bool PieceFile::is_one(const std::filesystem::path& path) {
  std::uint64_t magic = 0;
  const auto bytes = std::as_writable_bytes(std::span(&magic, 1));
  return File::open(path).read_some(0, bytes) == bytes.size() && magic == kMagic;
}

PieceFile::PieceFile(const std::filesystem::path& path) : file_(path) {
  PieceHeader header{};
  file_.read_exact(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != kMagic || header.check != check_of(header))
    refuse_pieces(path, "is no file of a fetch cache");
  slots_ = header.slots;
  end_ = header.end;
  data_begin_ = table_end(slots_);
  if (!std::has_single_bit(slots_) || data_begin_ > file_.size() || end_ < data_begin_)
    refuse_pieces(path, "is cut off");
  file_.map(data_begin_);
}

bool PieceFile::has_room(std::uint64_t size) const noexcept {
  return !table_full_.load(std::memory_order_relaxed) &&
         shared(reinterpret_cast<const PieceHeader*>(file_.data())->used).load(std::memory_order_relaxed) + size <=
             end_;
}

bool PieceFile::use() noexcept {
  const std::uint32_t now = seconds_now(), noted = noted_.load(std::memory_order_relaxed);
  if (noted != 0 && now - noted < kNoteSeconds) return true;
  if (noted == 0 && !file_.use()) return false;
  noted_.store(now);
  file_.touch();
  return true;
}

PieceSlot* PieceFile::find(std::uint64_t key) const noexcept {
  auto* const table = reinterpret_cast<PieceSlot*>(file_.data() + kHeaderBytes);
  for (std::uint64_t probe = 0; probe < kProbes; ++probe) {
    PieceSlot& slot = table[(key + probe) & (slots_ - 1)];
    const std::uint64_t there = shared(slot.key).load(std::memory_order_relaxed);
    if (there == key) return &slot;
    if (there == 0) return nullptr;
  }
  return nullptr;
}

PieceSlot* PieceFile::add(const PieceName& name) noexcept {
  if (!has_room(name.size)) return nullptr;
  auto* const table = reinterpret_cast<PieceSlot*>(file_.data() + kHeaderBytes);
  for (std::uint64_t probe = 0; probe < kProbes; ++probe) {
    PieceSlot& slot = table[(name.key + probe) & (slots_ - 1)];
    std::uint64_t there = 0;
    if (shared(slot.key).compare_exchange_strong(there, name.key) || there == name.key) return &slot;
  }
  table_full_.store(true);
  return nullptr;
}

std::uint64_t PieceFile::allocate(std::uint64_t size) noexcept {
  const auto used = shared(reinterpret_cast<PieceHeader*>(file_.data())->used);
  std::uint64_t at = used.load();
  do {
    if (at < data_begin_ || at + size > end_) return 0;
  } while (!used.compare_exchange_weak(at, at + size));
  return at;
}

bool PieceFile::is_sound(std::uint64_t place, std::uint64_t size) const noexcept {
  const std::uint64_t offset = place >> kSizeBits;
  return (place & kSizeMask) == size && offset >= data_begin_ && offset + size <= end_;
}

PieceStatus PieceFile::look(const PieceSlot& slot) const noexcept {
  const std::uint64_t state = shared(slot.state).load(std::memory_order_acquire);
  if (state == kStoredState) return PieceStatus::kStored;
  if (state != kFreeState && !is_abandoned(state)) return PieceStatus::kPending;
  const bool has_place = shared(slot.place).load(std::memory_order_relaxed) != 0;
  return has_place || has_room(kPieceBytes) ? PieceStatus::kFree : PieceStatus::kNoRoom;
}

PieceStatus PieceFile::claim(PieceSlot& slot, std::uint64_t size) noexcept {
  std::uint64_t state = shared(slot.state).load(std::memory_order_acquire);
  if (state == kStoredState) return PieceStatus::kStored;
  if (state != kFreeState && !is_abandoned(state)) return PieceStatus::kPending;
  if (!shared(slot.state).compare_exchange_strong(state, claim_now())) {
    return state == kStoredState ? PieceStatus::kStored : PieceStatus::kPending;
  }
  if (is_sound(shared(slot.place).load(), size)) return PieceStatus::kClaimed;
  const std::uint64_t place = allocate(size);
  if (place != 0) {
    shared(slot.place).store(place << kSizeBits | size);
    return PieceStatus::kClaimed;
  }
  release(slot);
  return PieceStatus::kNoRoom;
}

namespace {

// Returns whether it is a claim of this process, however old.
bool is_ours(std::uint64_t state) { return state > kStoredState && ((state ^ claim_now()) & 0xFFFF'FFFF) == 0; }

}  // namespace

void PieceFile::renew(PieceSlot& slot) noexcept {
  std::uint64_t state = shared(slot.state).load();
  if (is_ours(state)) shared(slot.state).compare_exchange_strong(state, claim_now());
}

void PieceFile::release(PieceSlot& slot) noexcept {
  std::uint64_t state = shared(slot.state).load();
  if (is_ours(state)) shared(slot.state).compare_exchange_strong(state, kFreeState);
}

void PieceFile::discard(PieceSlot& slot) noexcept {
  std::uint64_t there = kStoredState;
  shared(slot.state).compare_exchange_strong(there, kFreeState);
}

void PieceFile::store(PieceSlot& slot, const PieceName& name, std::span<const std::byte> bytes) {
  const std::uint64_t place = shared(slot.place).load();
  if (!is_sound(place, bytes.size())) refuse_pieces(path(), "has a damaged table");
  file_.write(place >> kSizeBits, bytes);
  shared(slot.checksum).store(xxh3(bytes, name.check));
  shared(slot.state).store(kStoredState, std::memory_order_release);
}

bool PieceFile::load(const PieceSlot& slot, const PieceName& name, std::span<std::byte> into) const noexcept {
  const std::uint64_t place = shared(slot.place).load(std::memory_order_relaxed);
  if (!is_sound(place, into.size())) return false;
  try {
    file_.read_exact(place >> kSizeBits, into);
  } catch (const DataError&) {
    return false;
  }
  return xxh3(into, name.check) == shared(slot.checksum).load(std::memory_order_relaxed);
}

void PieceFile::will_load(const PieceSlot& slot) const noexcept {
  const std::uint64_t place = shared(slot.place).load(std::memory_order_relaxed);
  file_.will_read(place >> kSizeBits, place & kSizeMask);
}

}  // namespace headrace::remote
