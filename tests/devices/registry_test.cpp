#include <fmt/format.h>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/registry.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// A CPU that passes for a GPU, with mathematics or without.
class FakeGpu final : public Device {
 public:
  enum class Trains { kYes, kNo };

  FakeGpu(int ordinal, const std::string& name, Trains trains) : inner_(name), trains_(trains) {
    info_ = inner_.info();
    info_.kind = DeviceKind::kCuda;
    info_.ordinal = ordinal;
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  MemoryUse memory_use() const noexcept override { return inner_.memory_use(); }
  std::unique_ptr<Stream> create_stream() override { return inner_.create_stream(); }
  std::unique_ptr<Event> create_event() override { return inner_.create_event(); }
  std::unique_ptr<Event> create_timed_event() override { return inner_.create_timed_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return inner_.allocate_pinned(bytes); }
  Kernels* kernels() noexcept override { return trains_ == Trains::kYes ? inner_.kernels() : nullptr; }
  std::string why_no_kernels() override { return "its wheels came off"; }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_.release(data, bytes, place);
  }

 private:
  CpuDevice inner_;
  Trains trains_;
  DeviceInfo info_;
};

class FakeCuda final : public Backend {
 public:
  FakeCuda(int count, FakeGpu::Trains trains) : count_(count), trains_(trains) {}

  std::string name() const override { return "cuda"; }
  std::vector<DeviceInfo> list() const override {
    std::vector<DeviceInfo> all;
    for (int i = 0; i < count_; ++i) {
      all.push_back(
          {.name = fmt::format("cuda:{}", i), .kind = DeviceKind::kCuda, .ordinal = i, .description = "fake"});
    }
    return all;
  }
  std::unique_ptr<Device> open(int ordinal, const std::string& name, int) const override {
    return std::make_unique<FakeGpu>(ordinal, name, trains_);
  }
  std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const override {
    throw DeviceError(ErrorCode::kUnsupported, "asked the fake", devices[0].info().name);
  }
  std::vector<Finding> diagnose() const override { return {}; }

 private:
  int count_;
  FakeGpu::Trains trains_;
};

struct RegistryTest : ::testing::Test {
  void SetUp() override {
    unsetenv("HEADRACE_DEVICES");
    unsetenv("HEADRACE_CPU_THREADS");
  }
  void TearDown() override {
    unsetenv("HEADRACE_DEVICES");
    unsetenv("HEADRACE_CPU_THREADS");
  }

  std::string opened(const std::string& spec, const Backend* gpu, DeviceNeed need = DeviceNeed::kMemory) const {
    std::vector<const Backend*> table{&cpu};
    if (gpu != nullptr) table.push_back(gpu);
    return open_devices(spec, need, table).to_string();
  }

  // The error's whole text.
  std::string refused(const std::string& spec, const Backend* gpu, DeviceNeed need = DeviceNeed::kMemory) const {
    try {
      return "opened " + opened(spec, gpu, need);
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.what();
    }
  }

  CpuBackend cpu;
  FakeCuda no_gpu{0, FakeGpu::Trains::kYes};
  FakeCuda gpus{3, FakeGpu::Trains::kYes};
  FakeCuda feeders{2, FakeGpu::Trains::kNo};
};

TEST_F(RegistryTest, CpusAreReplicas) {
  EXPECT_EQ(opened("cpu", nullptr), "cpu:0");
  EXPECT_EQ(opened("cpu:3", nullptr), "cpu:0, cpu:1, cpu:2");
}

TEST_F(RegistryTest, GpusAreAllOrTheNamedOnesOrLogical) {
  EXPECT_EQ(opened("cuda", &gpus), "cuda:0, cuda:1, cuda:2");
  EXPECT_EQ(opened("cuda:2,0", &gpus), "cuda:2, cuda:0");
  EXPECT_EQ(opened("cuda:1x2", &gpus), "cuda:1/0, cuda:1/1");
}

TEST_F(RegistryTest, AutoTakesTheGpusElseTheCpu) {
  EXPECT_EQ(opened("auto", &gpus), "cuda:0, cuda:1, cuda:2");
  EXPECT_EQ(opened("auto", &no_gpu), "cpu:0");
  EXPECT_EQ(opened("auto", nullptr), "cpu:0");
}

TEST_F(RegistryTest, AutoTakesOnlyWhatServesTheNeed) {
  EXPECT_EQ(opened("auto", &feeders, DeviceNeed::kMemory), "cuda:0, cuda:1");
  EXPECT_EQ(opened("auto", &feeders, DeviceNeed::kKernels), "cpu:0");
  EXPECT_EQ(opened("auto", &gpus, DeviceNeed::kKernels), "cuda:0, cuda:1, cuda:2");
}

TEST_F(RegistryTest, ANamedGpuThatCannotTrainIsRefusedForTraining) {
  EXPECT_THAT(
      refused("cuda:1", &feeders, DeviceNeed::kKernels),
      HasSubstr("unsupported: cuda:1: the cuda backend feeds batches but cannot train here: its wheels came off"));
}

TEST_F(RegistryTest, TheEnvironmentOverridesAutoOnly) {
  setenv("HEADRACE_DEVICES", "cpu:2", 1);
  EXPECT_EQ(opened("auto", &gpus), "cpu:0, cpu:1");
  EXPECT_EQ(opened("cuda:0", &gpus), "cuda:0");
  setenv("HEADRACE_DEVICES", "auto", 1);
  EXPECT_EQ(opened("auto", &gpus), "cuda:0, cuda:1, cuda:2");
  setenv("HEADRACE_DEVICES", "bogus", 1);
  EXPECT_THAT(refused("auto", &gpus), HasSubstr("unknown device 'bogus'"));
}

TEST_F(RegistryTest, WhatDoesNotExistIsNamedBesideWhatDoes) {
  const std::string unknown = refused("gpu", &gpus);
  EXPECT_THAT(unknown, HasSubstr("invalid_argument: unknown device 'gpu'"));
  EXPECT_THAT(unknown, HasSubstr("there is: cpu:0 ("));
  EXPECT_THAT(unknown, HasSubstr("cuda:2 (fake)"));
  EXPECT_THAT(refused("cuda:0,3", &gpus), HasSubstr("there is no device cuda:3"));
  EXPECT_THAT(refused("cuda", &no_gpu), HasSubstr("cuda: no such device on this machine"));
  EXPECT_THAT(refused("cuda", nullptr), HasSubstr("cuda: the CUDA module is not loaded"));
  EXPECT_THAT(refused("cuda:1,1", &gpus), HasSubstr("device cuda:1 is named twice"));
}

TEST_F(RegistryTest, OtherMakersAreAnsweredAsUnsupported) {
  for (const std::string name : {"tpu", "rocm", "hip", "mps", "tpu:0"}) {
    EXPECT_THAT(refused(name, &gpus), HasSubstr("unsupported: ")) << name;
    EXPECT_THAT(refused(name, &gpus), HasSubstr("not supported")) << name;
  }
}

TEST_F(RegistryTest, ACollectiveIsThatOfTheDevicesBackend) {
  const std::vector<const Backend*> table{&cpu, &gpus};
  DeviceGroup two_cpus = open_devices("cpu:2", DeviceNeed::kMemory, table);
  const std::unique_ptr<Collective> sums = create_collective(two_cpus, table);
  EXPECT_EQ(sums->local_replicas(), 2);
  EXPECT_EQ(sums->world_replicas(), 2);
  EXPECT_EQ(sums->first_replica(), 0);
  DeviceGroup two_gpus = open_devices("cuda:0,1", DeviceNeed::kMemory, table);
  EXPECT_THAT([&] { create_collective(two_gpus, table); },
              ::testing::ThrowsMessage<DeviceError>(HasSubstr("cuda:0: asked the fake")));
  EXPECT_THROW(create_collective(two_gpus, std::vector<const Backend*>{&cpu}), DeviceError);
  EXPECT_EQ(&backend_of(two_cpus, table), &cpu);
  EXPECT_EQ(&backend_of(two_gpus, table), &gpus);
}

TEST_F(RegistryTest, AListOfDevicesIsSplitAndTheOwnerKeepsThem) {
  const DeviceGroup owner = open_devices("cpu:3", DeviceNeed::kMemory);
  DeviceGroup first = owner.repeated(1);
  const DeviceGroup rest = first.split(1);
  EXPECT_EQ(owner.size(), 3);
  EXPECT_EQ(first.to_string(), "cpu:0");
  EXPECT_EQ(rest.to_string(), "cpu:1, cpu:2");
  EXPECT_EQ(&rest[0], &owner[1]);
}

TEST_F(RegistryTest, ACollectiveOverSeveralKindsIsRefused) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(cpu.open(0, "cpu:0", 1));
  devices.push_back(gpus.open(0, "cuda:0", 1));
  DeviceGroup mixed(std::move(devices));
  EXPECT_THAT([&] { create_collective(mixed); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("devices of several kinds: cpu:0, cuda:0")));
  DeviceGroup none({});
  EXPECT_THROW(create_collective(none), ConfigError);
}

TEST_F(RegistryTest, TheProgramsOwnTableBeginsWithTheCpu) {
  ASSERT_FALSE(backends().empty());
  EXPECT_EQ(backends()[0]->name(), "cpu");
  EXPECT_EQ(backends().size() + missing_backends().size(), 2U);
  EXPECT_EQ(open_devices("cpu:2", DeviceNeed::kMemory).size(), 2);
}

TEST_F(RegistryTest, OpenMpThreadsAreAShareOfTheCoresOrAsTheEnvironmentSays) {
  const auto threads = [&](int replicas = 1) {
    return dynamic_cast<CpuDevice&>(*cpu.open(0, "cpu:0", replicas)).threads();
  };
  EXPECT_EQ(threads(), cpu_cores());
  EXPECT_EQ(threads(cpu_cores()), 1);
  EXPECT_EQ(threads(100'000), 1);
  setenv("HEADRACE_CPU_THREADS", "3", 1);
  EXPECT_EQ(threads(), 3);
  for (const char* bad : {"0", "-1", "two", "2 ", "100000"}) {
    setenv("HEADRACE_CPU_THREADS", bad, 1);
    EXPECT_THROW(threads(), ConfigError) << bad;
  }
}

TEST_F(RegistryTest, TheCpuDescribesItself) {
  const std::vector<Finding> findings = cpu.diagnose();
  ASSERT_GE(findings.size(), 5U);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.name.empty());
    EXPECT_TRUE(finding.found || !finding.hint.empty()) << finding.name << " is missing without a hint";
  }
  EXPECT_THROW(cpu.open(1, "cpu:1", 1), DeviceError);
}

}  // namespace
}  // namespace headrace::test
