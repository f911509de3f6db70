/* Shared by the files of the emulated device: see cuda_runtime.h. */
#ifndef CUDA_EMU_INTERNAL_H
#define CUDA_EMU_INTERNAL_H

#include "cuda_runtime.h"

namespace emu {

/* blocks.cpp: runs all blocks of a grid to their ends. */
void run_blocks(const cudaLaunchConfig_t &, bool dependent, const std::function<void()> &kernel);

/* emu.cpp: whether cuBLASLt can be initialized. */
bool library_begins();

/* watch.cpp: controls which writes to device memory are visible, with CUDA_EMU_WATCH in the environment. */
extern const bool watching;

/* Memory that is watched, and to which only kernels write. */
void *watched_memory(size_t bytes);
void free_watched(void *);

/* No kernel is running any more: what was written is visible to all that follow. */
void watch_settle();

/* A kernel begins or has ended; at its end, what only single blocks saw becomes visible to all. */
void watch_begin();
void watch_end();

/* Blocks are about to run that have not waited: they find NaN where earlier kernels wrote, and any write of theirs is
 * an error. The second function is called when they have waited. */
void watch_hide();
void watch_reveal();

/* A block is about to continue, or stops running. Until it fences, only the block itself sees its writes. */
struct byte_written {
  unsigned char *at, value;
};
void watch_enter(const std::vector<byte_written> &own);
void watch_leave(std::vector<byte_written> *own);

/* All writes of the running block so far become visible; or a single one, if it is to device memory. */
void watch_publish();
bool watch_publish(const void *, size_t bytes);

} // namespace emu

#endif
