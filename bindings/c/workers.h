/* The processes that a launcher started together, each with its share of one stream. Part of
 * <headrace/headrace.h>. */
#ifndef HEADRACE_C_WORKERS_H_
#define HEADRACE_C_WORKERS_H_

#include <stddef.h>
#include <stdint.h>

#include "headrace/c/devices.h"
#include "headrace/c/errors.h"
#include "headrace/c/loaders.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process among them. */
typedef struct hr_worker {
  size_t size;
  int32_t rank;
  int32_t workers;       /* 1: this process runs alone */
  int32_t local_rank;    /* among the processes of this host; -1 if the launcher does not say */
  int32_t local_workers; /* processes of this host; -1 if the launcher does not say */
} hr_worker;
#define HR_WORKER_INIT \
  { sizeof(hr_worker), 0, 1, -1, -1 }

/* Reads TF_CONFIG and the variables of torchrun, MPI launchers, Slurm and Kubernetes; opens nothing. Fails with
 * the name of the variable that is missing or wrong. */
HR_API hr_status hr_worker_describe(hr_worker* worker);

/* Sets world_replicas and world_first: a loader on `devices` then serves this worker's replicas and, of an indexed
 * source, reads their records alone. REQUIRES: every worker has equally many devices. */
HR_API hr_status hr_worker_share(const hr_worker* worker, const hr_devices* devices, hr_loader_options* options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEADRACE_C_WORKERS_H_ */
