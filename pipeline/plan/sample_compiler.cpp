#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/pixel_step.h"
#include "headrace/pipeline/plan/content_sample.h"
#include "headrace/pipeline/plan/sample_program.h"

namespace headrace {
namespace {

// Differs for files that are alike in names, sizes and times. What lies on a disk was perhaps made of files that
// are gone: their content tells. What lies in memory is of files that this process opened: their path does,
// unread.
std::uint64_t tell_apart(const Source& source, bool resident_cache) {
  if (!resident_cache) return sample_content(source).value_or(0);
  return source.info().revision || lacks_identity(source.info()) ? xxh3(source.info().name) : 0;
}

bool spans_fields(const SampleStage& stage) {
  const auto* planned = std::get_if<PlannedOperation>(&stage);
  return planned != nullptr && planned->operation.definition().spans_fields();
}

// Returns the bytes of the field's row, 0 if records have different numbers of them.
std::size_t row_bytes_of(const Field& field) {
  if (field.shape.is_dynamic() || field.encoding != Encoding::kRaw) return 0;
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

bool is_ragged(const StreamPlan& plan, std::size_t field) {
  return std::ranges::find(plan.ragged, field, &RaggedTensor::values) != plan.ragged.end();
}

// For fields and views: there are few.
std::uint16_t narrow(std::size_t number) { return static_cast<std::uint16_t>(number); }

// What a section makes.
enum class Form {
  kRows,    // the rows of a batch, through the plan's caches
  kPart,    // a part's sample: what its caches have is not made
  kSample,  // a sample of some of the plan's stages: without its caches, and labels are not checked
};

class SectionCompiler {
 public:
  // `field`: the section's first in the record; `view`: its first.
  // `decoded`: the field whose rows devices may decode.
  SectionCompiler(SampleCode& code, const StreamPlan& plan, Form form, std::size_t field, std::size_t view,
                  std::optional<std::size_t> decoded = {})
      : code_(code),
        plan_(plan),
        form_(form),
        field_(field),
        view_(view),
        decoded_(decoded),
        fields_(plan.source->info().fields) {
    HEADRACE_CHECK(view < kMaxFields, "a combined sample has too many fields");
  }

  // Adds the section, after those of its parts.
  SampleCode::Section compile(std::span<const SampleStage> stages) {
    std::vector<SampleCode::Part> parts = compile_parts();
    SampleCode::Section section{.begin = code_.instructions.size(), .first_cache = code_.caches.size()};
    if (form_ != Form::kSample) section.caches = plan_.caches.size();
    if (form_ == Form::kPart && section.caches > 0) {
      add({.kind = InstructionKind::kFind, .out = at(0), .count = section.caches, .index = section.first_cache});
    }
    if (parts.empty()) {
      view_record();
    } else {
      run_parts(std::move(parts));
    }
    std::size_t done = 0;
    for (const PlannedCache& planned : std::span(plan_.caches).first(section.caches)) {
      make_sample(stages.subspan(done, planned.stages - done), /*cached=*/true, &planned);
      done = planned.stages;
    }
    stages = stages.subspan(done);
    if (form_ == Form::kRows) {
      make_rows(stages);
    } else {
      make_sample(stages, /*cached=*/form_ == Form::kSample);
    }
    section.end = code_.instructions.size();
    return section;
  }

  const Fields& fields() const noexcept { return fields_; }

 private:
  void add(Instruction instruction) { code_.instructions.push_back(std::move(instruction)); }
  // Returns the view of a field, and one of the two for the steps' results, after all that fields can have.
  std::uint16_t at(std::size_t field) const { return narrow(view_ + field); }
  std::uint16_t result(std::size_t step) const { return narrow(view_ + kMaxFields + step % 2); }

  std::vector<SampleCode::Part> compile_parts() {
    std::vector<SampleCode::Part> parts;
    std::size_t view = view_;
    for (const ProcessedPart& part : plan_.parts) {
      const StreamPlan& plan = *part.plan;
      SectionCompiler compiler(code_, plan, Form::kPart, field_ + part.first_field, view);
      parts.push_back({.planned = part, .section = compiler.compile(plan.sample_stages)});
      if (plan_.zipped) view += compiler.fields().size();
    }
    return parts;
  }

  void run_parts(std::vector<SampleCode::Part> parts) {
    const std::size_t first = code_.parts.size();
    if (!plan_.zipped) add({.kind = InstructionKind::kSelect, .count = parts.size(), .index = first});
    for (SampleCode::Part& part : parts) {
      if (plan_.zipped) add({.kind = InstructionKind::kPart, .count = 1, .index = code_.parts.size()});
      code_.parts.push_back(std::move(part));
    }
  }

  void view_record() {
    LabelCheck labels(*plan_.source);
    if (form_ != Form::kSample && !labels.does_nothing()) {
      add({.kind = InstructionKind::kCheckLabel,
           .field = narrow(field_ + labels.field()),
           .index = code_.labels.size()});
      code_.labels.push_back(labels);
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      add({.kind = InstructionKind::kView,
           .field = narrow(field_ + i),
           .out = at(i),
           .index = code_.viewed.size()});
      code_.viewed.push_back(fields_[i]);
    }
  }

  // Adds the stages; finish(field, its steps since the last stage that spans fields) adds these.
  template <typename Finish>
  void run_stages(std::span<const SampleStage> stages, bool cached, const Finish& finish) {
    for (;;) {
      const auto next = std::ranges::find_if(stages, spans_fields);
      const auto before = stages.first(static_cast<std::size_t>(next - stages.begin()));
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        std::vector<NamedStep> steps = compile_steps(fields_[i], before, cached);
        if (next == stages.end()) {
          finish(i, std::move(steps));
        } else if (!steps.empty()) {
          add({.kind = InstructionKind::kKeep, .field = narrow(i), .in = run_steps(i, steps), .out = at(i)});
        }
      }
      if (next == stages.end()) return;
      run_on_fields(std::get<PlannedOperation>(*next));
      stages = stages.subspan(before.size() + 1);
    }
  }

  // Adds the steps of a field and returns the view of its result.
  std::uint16_t run_steps(std::size_t field, std::span<NamedStep> steps) {
    std::uint16_t in = at(field);
    for (std::size_t i = 0; i < steps.size(); ++i) in = add_step(InstructionKind::kStep, steps[i], i, in, field);
    return in;
  }

  std::uint16_t add_step(InstructionKind kind, NamedStep& named, std::size_t number, std::uint16_t in,
                         std::size_t field) {
    add({.kind = kind,
         .takes_long = named.takes_long,
         .buffer = static_cast<std::uint8_t>(number % 2),
         .field = narrow(field),
         .in = in,
         .out = result(number),
         .bytes = row_bytes_of(fields_[field]),
         .step = std::move(named.step),
         .name = std::move(named.name)});
    return result(number);
  }

  void run_on_fields(const PlannedOperation& planned) {
    const OperationDefinition& operation = planned.operation.definition();
    auto step = operation.create_step(planned.number, fields_);
    fields_ = operation.apply_to_sample(fields_);
    add({.kind = InstructionKind::kSampleStep,
         .takes_long = true,
         .out = at(0),
         .count = fields_.size(),
         .sample_step = std::move(step),
         .name = "map " + operation.describe()});
  }

  // `cache`: keeps the sample; may be null.
  void make_sample(std::span<const SampleStage> stages, bool cached, const PlannedCache* cache = nullptr) {
    run_stages(stages, cached, [&](std::size_t field, std::vector<NamedStep> steps) {
      add({.kind = InstructionKind::kAppend, .in = run_steps(field, steps)});
    });
    add({.kind = InstructionKind::kSample,
         .cached = cache != nullptr,
         .out = at(0),
         .count = fields_.size(),
         .index = code_.caches.size()});
    if (cache == nullptr) return;
    const std::uint64_t records = plan_.source->info().records;
    cache->cache->bind(
        mix_seed(plan_.cache_fingerprint(*cache), tell_apart(*plan_.source, cache->cache->resident())), records);
    code_.caches.push_back(
        {.cache = cache->cache, .records = records, .fields = fields_.size(), .next = code_.instructions.size()});
  }

  void make_rows(std::span<const SampleStage> stages) {
    run_stages(stages, /*cached=*/false, [&](std::size_t field, std::vector<NamedStep> steps) {
      if (field == decoded_) merge_mirroring(steps, fields_[field].shape);
      const bool copied = steps.empty() || is_ragged(plan_, field);
      if (copied) {
        const std::uint16_t in = run_steps(field, steps);
        return add({.kind = InstructionKind::kRow,
                    .field = narrow(field),
                    .in = in,
                    .bytes = row_bytes_of(fields_[field])});
      }
      const std::size_t last = steps.size() - 1;
      const std::uint16_t in = run_steps(field, std::span(steps).first(last));
      add_step(InstructionKind::kRow, steps[last], last, in, field);
    });
  }

  SampleCode& code_;
  const StreamPlan& plan_;
  Form form_;
  std::size_t field_, view_;
  std::optional<std::size_t> decoded_;
  Fields fields_;  // after the stages so far
};

}  // namespace

std::vector<NamedStep> compile_steps(Field& field, std::span<const SampleStage> stages, bool cached) {
  StepList steps;
  for (const SampleStage& stage : stages) {
    if (const auto* planned = std::get_if<PlannedOperation>(&stage)) {
      const OperationDefinition& operation = planned->operation.definition();
      if (field.name != operation.field()) continue;
      const OperationPlace place{.number = planned->number, .before = field, .cached = cached};
      field = operation.apply(field);
      compile_step(steps, operation, place);
    } else if (field.encoding == Encoding::kImage) {
      const auto& decode = std::get<DecodeStage>(stage);
      if (is_mask(field)) {
        steps.add(std::make_unique<DecodeMaskStep>(decode), "decode masks");
      } else {
        steps.add(std::make_unique<DecodeStep>(decode), "decode");
      }
      field = decoded_field(field, decode);
    }
  }
  return steps.take();
}

SampleCode compile_samples(const StreamPlan& plan, std::span<const SampleStage> stages, bool to_rows,
                           std::optional<std::size_t> decoded) {
  SampleCode code;
  SectionCompiler compiler(code, plan, to_rows ? Form::kRows : Form::kSample, /*field=*/0, /*view=*/0, decoded);
  code.plan = compiler.compile(stages);
  code.fields = compiler.fields();
  code.records = plan.source->info().records;
  return code;
}

}  // namespace headrace
