/* What the files of the emulated device share: see cuda_runtime.h. */
#ifndef CUDA_EMU_INTERNAL_H
#define CUDA_EMU_INTERNAL_H

#include "cuda_runtime.h"

namespace emu {

/* blocks.cpp: runs all blocks of a grid, to their ends. */
void run_blocks(const cudaLaunchConfig_t &, bool dependent, const std::function<void()> &kernel);

/* watch.cpp: what is seen of device memory with CUDA_EMU_WATCH in the environment. */
extern const bool watching;

/* Memory that kernels write to, where only they are watched. */
void *watched_memory(size_t bytes);
void free_watched(void *);

/* No kernel is under way: what was written is there for all that come. */
void watch_settle();

/* A kernel begins, and has ended: what its blocks kept to themselves is seen by all. */
void watch_begin();
void watch_end();

/* Blocks that have not waited are about to run: they find what earlier kernels wrote full of NaN, and any write of
 * theirs is an error. Then they have waited. */
void watch_hide();
void watch_reveal();

/* A block is about to run on, or stops running: until it fences, its writes are seen by itself only. */
struct byte_written {
  unsigned char *at, value;
};
void watch_enter(const std::vector<byte_written> &own);
void watch_leave(std::vector<byte_written> *own);

/* The running block's writes so far are seen by all from now on; or one of them, if it is to device memory. */
void watch_publish();
bool watch_publish(const void *, size_t bytes);

} // namespace emu

#endif
