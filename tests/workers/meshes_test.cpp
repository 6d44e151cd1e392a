#include "headrace/devices/workers/module/meshes.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr auto kEither = WorkerTransportKind::kMpiOrGloo;

TEST(MeshChoice, IsMpiIfAllCan) {
  const WorkerFact choice = choose_mesh({{.wanted = kEither, .library = "Some MPI 1"}, {.wanted = kEither}});
  EXPECT_EQ(choice.value, "mpi");
  EXPECT_EQ(choice.from, "all workers can use it: Some MPI 1");
}

TEST(MeshChoice, IsGlooIfOneCannot) {
  const WorkerFact choice =
      choose_mesh({{.wanted = kEither}, {.wanted = kEither, .why_not = "there is no module"}});
  EXPECT_EQ(choice.value, "gloo");
  EXPECT_EQ(choice.from, "worker 1: there is no module");
}

TEST(MeshChoice, RefusesADemandThatAnotherCannotMeet) {
  EXPECT_THAT(error_of<ConfigError>([&] {
                choose_mesh({{.why_not = "HEADRACE_TRANSPORT"}, {.wanted = WorkerTransportKind::kMpi}});
              }).what(),
              AllOf(HasSubstr("worker 1 has HEADRACE_TRANSPORT=mpi"), HasSubstr("worker 0: "),
                    HasSubstr("one mpirun or srun")));
}

TEST(MeshChoice, NeedsThePlacesOfThePlan) {
  const WorkerPlan plan{.rank = 1, .workers = 2, .transport = kEither};
  const MpiPlace alone{.library = "Some MPI 1", .rank = 0, .workers = 1};
  EXPECT_EQ(offer_of(plan, alone).why_not, "MPI knows it as rank 0 of 1 (Some MPI 1), the launcher as 1 of 2");
  EXPECT_EQ(offer_of(plan, MpiPlace{.rank = 1, .workers = 2}).why_not, "");
}

TEST(MeshChoice, SaysWhereItLookedForTheModule) {
  setenv("HEADRACE_MPI_MODULE", "/nowhere/mpi.so", 1);
  const FoundMpi found = find_mpi_module();
  unsetenv("HEADRACE_MPI_MODULE");
  EXPECT_EQ(found.module, nullptr);
  EXPECT_THAT(found.why_not, HasSubstr("there is no /nowhere/mpi.so"));
}

TEST(MeshChoice, OffersTravelAsText) {
  const MpiOffer offer{.wanted = kEither, .why_not = "no", .library = "L"};
  const MpiOffer told = MpiOffer::from_json(offer.to_json());
  EXPECT_EQ(told.wanted, offer.wanted);
  EXPECT_EQ(told.why_not + told.library, "noL");
}

}  // namespace
}  // namespace headrace::test
