#include "headrace/pipeline/plan/sample_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/plan/cached_sample.h"

namespace headrace {
namespace {

std::vector<std::uint16_t> random_after_caches(const StreamPlan& plan) {
  std::vector<std::uint16_t> numbers;
  for (const SampleStage& stage : std::span(plan.sample_stages).subspan(plan.cached_stages())) {
    const auto* planned = std::get_if<PlannedOperation>(&stage);
    if (planned != nullptr && is_random(planned->operation)) numbers.push_back(planned->number);
  }
  return numbers;
}

bool holds_all(const SampleCode::Cache& cache) noexcept {
  return cache.cache->counters().records == cache.records;
}

// Calls run(), which runs the instruction's step, and counts its cost if this record is timed.
template <typename Run>
void run_timed(const Instruction& at, const StepContext& context, const Run& run) {
  if (context.samples == nullptr) return run();
  Scratch& scratch = *context.scratch;
  const std::uint64_t decoded = scratch.decode_ns, begin = scratch.stamp_ns, bytes = scratch.decoded_bytes;
  run();
  const std::uint64_t end = now_ns();
  scratch.stamp_ns = end;  // the next step begins: one clock reading per step
  const bool fused = at.decode != at.stage;
  const std::uint64_t decoding = fused ? scratch.decode_ns - decoded : 0;
  context.samples[at.stage].items = 1;
  context.samples[at.stage].ns += end - begin - decoding;
  context.samples[at.decode].decoded_bytes += scratch.decoded_bytes - bytes;
  if (fused) {
    context.samples[at.decode].items = 1;
    context.samples[at.decode].ns += decoding;
  }
  if (context.trace != nullptr) {
    context.trace->add({.name = at.span, .begin_ns = begin, .end_ns = end, .batch = context.batch, .items = 1});
  }
}

// The result is made where it stays: to copy a view right after its parts were written is slow.
void run_step(const Instruction& at, const StepContext& context, StepOutput output, FieldView* views) {
  run_timed(at, context, [&] {
    if (at.takes_long) context.probe->begin(at.name, context.record);
    ::new (views + at.out) FieldView(at.step->run(views[at.in], context, output));
    if (!at.takes_long) return;
    ImageNotes& notes = context.scratch->notes;
    if (!notes.warning.empty() && notes.step.empty()) notes.step = at.name;
  });
}

void run_sample_step(const Instruction& at, const StepContext& context, FieldView* views) {
  run_timed(at, context, [&] {
    context.probe->begin(at.name, context.record);
    at.sample_step->run({views + at.out, at.count}, context);
  });
}

void keep(const Instruction& at, Scratch& scratch, FieldView* views) {
  const FieldView& in = views[at.in];
  const std::span<std::byte> kept = scratch.grow(scratch.fields[at.field], in.bytes.size());
  std::ranges::copy(in.bytes, kept.begin());
  views[at.out].bytes = kept;
  views[at.out].shape = in.shape;
}

// Writes the entries of a ragged field to the beginning of its row, and their number to the field of lengths.
void write_entries(const std::string& field, std::size_t place, std::span<const std::byte> entries,
                   const StepContext& context, const SampleRows& rows) {
  const std::size_t room = context.row_bytes[place], entry = context.ragged->entry_bytes[place];
  if (entries.size() % entry != 0 || entries.size() > room) {
    throw Error(ErrorCode::kDataCorrupt,
                fmt::format("field '{}' has {} bytes, in a ragged batch of up to {} entries of {} bytes each",
                            field, entries.size(), room / entry, entry),
                entries.size() > room ? "raise its max_length in ragged_batch()" : "");
  }
  if (!entries.empty()) std::memcpy(rows[place], entries.data(), entries.size());
  const auto count = static_cast<std::int64_t>(entries.size() / entry);
  std::memcpy(rows[context.ragged->lengths[place]], &count, sizeof count);
}

void write_row(const Instruction& at, const Fields& fields, const StepContext& context, const SampleRows& rows,
               FieldView* views) {
  const std::span<std::byte> row(rows[at.field],
                                 context.row_bytes != nullptr ? context.row_bytes[at.field] : at.bytes);
  if (at.step != nullptr) {
    const bool for_device = at.field == context.jpeg_field && context.jpeg.window != nullptr;
    return run_step(at, context, StepOutput(row, for_device ? &context.jpeg : nullptr), views);
  }
  const std::span<const std::byte> bytes = views[at.in].bytes;
  const std::string& name = fields[at.field].name;
  if (context.ragged != nullptr && context.ragged->entry_bytes[at.field] > 0) {
    return write_entries(name, at.field, bytes, context, rows);
  }
  if (bytes.size() != row.size()) {
    throw Error(ErrorCode::kDataCorrupt,
                fmt::format("field '{}' has {} bytes instead of {}", name, bytes.size(), row.size()));
  }
  if (row.size() > sizeof(std::int64_t)) prefetch(context.ahead);
  std::memcpy(row.data(), bytes.data(), row.size());
}

// Returns the scratch's buffer for one more sample.
std::vector<std::byte>& sample_buffer(Scratch& scratch, std::size_t made) {
  if (scratch.samples_made.size() == made) scratch.samples_made.emplace_back();
  return scratch.samples_made[made];
}

std::size_t append(const FieldView& field, Scratch& scratch, std::size_t made, std::size_t used) {
  std::vector<std::byte>& buffer = sample_buffer(scratch, made);
  const std::size_t more = appended_bytes(field);
  if (buffer.capacity() < used + more) scratch.charge(more);
  return append_field(buffer, used, field);
}

// Copies elements of a size known to the compiler: a load and a store each.
template <std::size_t kBytes>
void copy_elements(const FieldColumn& column, std::span<const std::uint64_t> records, std::byte* to) noexcept {
  for (const std::uint64_t record : records) {
    std::memcpy(to, column.data + record * kBytes, kBytes);
    to += kBytes;
  }
}

void copy_column(const FieldColumn& column, std::span<const std::uint64_t> records, std::byte* to) noexcept {
  switch (column.record_bytes) {
    case 1: return copy_elements<1>(column, records, to);
    case 2: return copy_elements<2>(column, records, to);
    case 4: return copy_elements<4>(column, records, to);
    case 8: return copy_elements<8>(column, records, to);
    default: break;
  }
  for (const std::uint64_t record : records) {
    std::memcpy(to, column.data + record * column.record_bytes, column.record_bytes);
    to += column.record_bytes;
  }
}

}  // namespace

SampleProgram::SampleProgram(const StreamPlan& plan, std::optional<std::size_t> decoded)
    : code_(compile_samples(plan, plan.sample_stages, /*to_rows=*/true, decoded)),
      random_operations_(random_after_caches(plan)) {
  name_stages();
  if (plan.source->info().images_checked) {
    with_encoded_images([&](EncodedImages& images) {
      images.checked = true;
      images.source = plan.source.get();
    });
  }
  const std::span<const FieldColumn> columns = plan.source->columns();
  if (does_nothing()) columns_.assign(columns.begin(), columns.end());
}

SampleProgram::SampleProgram(const StreamPlan& plan, std::span<const SampleStage> stages)
    : code_(compile_samples(plan, stages, /*to_rows=*/false)) {}

// Decoding is a separate stage, "decode", even if it is done inside another step.
void SampleProgram::name_stages() {
  for (Instruction& at : code_.instructions) {
    if (at.name.empty()) continue;
    const bool fused = at.step != nullptr && at.step->encoded_images() != nullptr;
    const bool decodes = fused || dynamic_cast<const DecodeStep*>(at.step.get()) != nullptr;
    at.decode = at.stage = stages_.size();
    if (decodes) stages_.push_back({.name = "decode", .kind = StageKind::kDecode});
    if (decodes && !fused) continue;
    at.stage = stages_.size();
    if (!decodes) at.decode = at.stage;
    stages_.push_back({.name = fused ? at.name.substr(kDecodeAnd.size()) : at.name});
  }
  stages_.push_back({.name = "write rows"});
}

std::size_t SampleProgram::after_caches() const noexcept {
  return code_.plan.caches == 0 ? code_.plan.begin : code_.caches_of(code_.plan).back().next;
}

// Those of the steps after the last cache.
template <typename Use>
void SampleProgram::with_encoded_images(const Use& use) {
  for (std::size_t i = after_caches(); i < code_.plan.end; ++i) {
    Step* const step = code_.instructions[i].step.get();
    if (EncodedImages* const images = step != nullptr ? step->encoded_images() : nullptr) use(*images);
  }
}

void SampleProgram::keep_jpeg_indexes(MemoryBudget& budget) {
  with_encoded_images(
      [&](EncodedImages& images) { images.jpegs = std::make_shared<JpegIndexes>(code_.records, budget); });
}

void SampleProgram::name_spans(Trace& trace) {
  for (Instruction& at : code_.instructions) {
    if (!at.name.empty()) at.span = trace.keep(at.name);
  }
}

bool SampleProgram::is_slow(const SampleCode::Section& section) const noexcept {
  for (std::size_t i = section.end; i-- > section.begin;) {
    const Instruction& at = code_.instructions[i];
    if (at.takes_long) return true;
    if (at.cached && holds_all(code_.caches[at.index])) return false;
    if (at.kind != InstructionKind::kPart && at.kind != InstructionKind::kSelect) continue;
    const auto parts = std::span(code_.parts).subspan(at.index, at.count);
    if (std::ranges::any_of(parts, [&](const SampleCode::Part& part) { return is_slow(part.section); }))
      return true;
  }
  return false;
}

bool SampleProgram::does_nothing() const noexcept {
  return std::ranges::all_of(code_.instructions, [](const Instruction& at) {
    const bool moves = at.kind == InstructionKind::kRow || at.kind == InstructionKind::kAppend ||
                       at.kind == InstructionKind::kSample;
    return at.kind == InstructionKind::kView || (moves && at.step == nullptr && !at.cached);
  });
}

bool SampleProgram::is_warm() const noexcept {
  return std::ranges::any_of(code_.caches_of(code_.plan), holds_all);
}

bool SampleProgram::cache_may_wait() const noexcept {
  return std::ranges::any_of(code_.caches_of(code_.plan),
                             [](const SampleCode::Cache& cache) { return !cache.cache->resident(); });
}

FoundSample SampleProgram::find(std::size_t first_cache, std::size_t caches, std::uint64_t record,
                                std::vector<std::byte>& scratch) const noexcept {
  for (std::size_t i = first_cache + caches; i-- > first_cache;) {
    const auto bytes = code_.caches[i].cache->find(record, scratch);
    if (!bytes.empty()) return {.bytes = bytes, .cache = i};
  }
  return {};
}

void SampleProgram::run_record(const RecordView& record, const StepContext& context, const Rows& rows) const {
  Work work{.record = record, .rows = rows};
  run(code_.plan.begin, code_.plan.end, context.record, context, work);
}

void SampleProgram::run_cached(const FoundSample& found, const StepContext& context, const Rows& rows) const {
  const SampleCode::Cache& cache = code_.caches[found.cache];
  read_sample(found.bytes, std::span(context.scratch->views).first(cache.fields));
  const RecordView none;
  Work work{.record = none, .rows = rows};
  run(cache.next, code_.plan.end, context.record, context, work);
}

std::span<const FieldView> SampleProgram::make_sample(const RecordView& record, const StepContext& context) const {
  run_record(record, context, {});
  return std::span(context.scratch->views).first(code_.fields.size());
}

// The step that fails gives the error its name.
void SampleProgram::run(std::size_t begin, std::size_t end, std::uint64_t number, const StepContext& context,
                        Work& work) const {
  Scratch& scratch = *context.scratch;
  FieldView* const views = scratch.views.data();
  const Instruction* at = code_.instructions.data() + begin;
  const Instruction* const last = code_.instructions.data() + end;
  try {
    for (; at != last; ++at) {
      switch (at->kind) {
        case InstructionKind::kCheckLabel: code_.labels[at->index].check(work.record.fields[at->field]); break;
        case InstructionKind::kView:
          ::new (views + at->out) FieldView(view_of(code_.viewed[at->index], work.record.fields[at->field]));
          break;
        case InstructionKind::kFind: at = find(*at, number, scratch, work); break;
        case InstructionKind::kPart: run(code_.parts[at->index], number, context, work); break;
        case InstructionKind::kSelect: run_selected(*at, number, context, work); break;
        case InstructionKind::kStep: run_step(*at, context, {scratch, scratch.results[at->buffer]}, views); break;
        case InstructionKind::kKeep: keep(*at, scratch, views); break;
        case InstructionKind::kSampleStep: run_sample_step(*at, context, views); break;
        case InstructionKind::kAppend: work.used = append(views[at->in], scratch, work.made, work.used); break;
        case InstructionKind::kSample: complete(*at, number, context, work); break;
        case InstructionKind::kRow: write_row(*at, code_.fields, context, work.rows, views); break;
      }
    }
  } catch (const std::exception& error) {
    if (at->name.empty()) throw;
    throw name_step(at->name, error);
  }
}

void SampleProgram::run_selected(const Instruction& at, std::uint64_t number, const StepContext& context,
                                 Work& work) const {
  const auto parts = std::span(code_.parts).subspan(at.index, at.count);
  const auto after = std::ranges::upper_bound(
      parts, number, {}, [](const SampleCode::Part& part) { return part.planned.first_record; });
  run(*(after - 1), number, context, work);
}

// Random numbers are those of the combination's record.
void SampleProgram::run(const SampleCode::Part& part, std::uint64_t number, const StepContext& context,
                        Work& work) const {
  const ProcessedPart& planned = part.planned;
  const std::uint64_t of_part = planned.record_at ? planned.record_at(number) : number - planned.first_record;
  if (!planned.write_numbers) return run(part.section.begin, part.section.end, of_part, context, work);
  std::array<std::uint64_t, kMaxFields> numbers;
  planned.write_numbers(number, numbers.data());
  StepContext numbered = context;
  numbered.numbers = numbers.data();
  run(part.section.begin, part.section.end, of_part, numbered, work);
}

const Instruction* SampleProgram::find(const Instruction& at, std::uint64_t number, Scratch& scratch,
                                       Work& work) const {
  const FoundSample found = find(at.index, at.count, number, sample_buffer(scratch, work.made++));
  if (found.empty()) return &at;
  const SampleCode::Cache& cache = code_.caches[found.cache];
  read_sample(found.bytes, std::span(scratch.views).subspan(at.out, cache.fields));
  return code_.instructions.data() + cache.next - 1;
}

void SampleProgram::complete(const Instruction& at, std::uint64_t number, const StepContext& context,
                             Work& work) const {
  const auto bytes =
      std::span<const std::byte>(sample_buffer(*context.scratch, work.made++)).first(std::exchange(work.used, 0));
  read_sample(bytes, std::span(context.scratch->views).subspan(at.out, at.count));
  if (!at.cached) return;
  code_.caches[at.index].cache->insert(number, bytes);
  if (context.samples != nullptr) context.scratch->stamp_ns = now_ns();  // keeping a sample is no step of the plan
}

void SampleProgram::copy_rows(std::span<const std::uint64_t> records, const Rows& first) const noexcept {
  for (std::size_t i = 0; i < columns_.size(); ++i) copy_column(columns_[i], records, first[i]);
}

}  // namespace headrace
