/* Watched device memory. Kernels find it write-protected. The first write to a page faults, and the page's old content
 * is saved; so it is known what a block has written, and it can be taken back while other blocks run. The memory is
 * mapped twice: the emulation itself accesses it through a second mapping, which is never protected. */
#include "emu.h"

#include <csignal>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace emu {

const bool watching = getenv("CUDA_EMU_WATCH") != nullptr;

namespace {

constexpr size_t PAGE = 4096, GRAIN = 256; /* GRAIN: arenas are rounded up to this: take() in cuda/internal.cuh */
typedef std::map<unsigned char *, std::vector<unsigned char>> pages;

struct region {
  size_t bytes;
  ptrdiff_t open; /* distance from the kernels' mapping to the other one */
  bool fresh;     /* not protected yet */
};
std::map<unsigned char *, region> regions;
enum { IDLE, HIDDEN, RUNNING } mode;  /* who writes to a page first: the host, nobody (an error), or a block */
std::vector<unsigned char *> written; /* pages that the host has written */
pages settled;                        /* pages that kernels have written since the device was idle, as they were then */
pages others;                         /* pages that the running block has written, as the other blocks see them */
struct stretch {
  unsigned char *at;
  unsigned char kept[GRAIN];
};
std::vector<stretch> unfinished; /* what earlier kernels have written since then */

void protect(unsigned char *at, size_t bytes, int protection) {
  if (mprotect(at, bytes, protection)) die("mprotect failed; cannot watch device memory");
}

std::map<unsigned char *, region>::iterator region_of(unsigned char *at) {
  auto next = regions.upper_bound(at);
  if (next == regions.begin()) return regions.end();
  auto found = std::prev(next);
  return at < found->first + found->second.bytes ? found : regions.end();
}

unsigned char *open(unsigned char *at) { return at + region_of(at)->second.open; }

void on_write(int, siginfo_t *info, void *) {
  unsigned char *at = static_cast<unsigned char *>(info->si_addr);
  if (region_of(at) == regions.end()) {
    signal(SIGSEGV, SIG_DFL); /* not our memory: fault again, without this handler */
    return;
  }
  if (mode == HIDDEN) die("a thread writes to device memory before it waits");
  unsigned char *page = at - reinterpret_cast<uintptr_t>(at) % PAGE;
  if (mode == IDLE) written.push_back(page);
  if (mode == RUNNING) settled.try_emplace(page, page, page + PAGE), others.try_emplace(page, page, page + PAGE);
  protect(page, PAGE, PROT_READ | PROT_WRITE);
}

} // namespace

void *watched_memory(size_t bytes) {
  bytes = (bytes + PAGE - 1) / PAGE * PAGE;
  int file = memfd_create("device memory", 0);
  void *p[2] = {MAP_FAILED, MAP_FAILED};
  for (int i = 0; i < 2 && file >= 0 && !ftruncate(file, (off_t)bytes); i++)
    p[i] = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p[1] == MAP_FAILED) die("out of memory for the device");
  close(file);
  unsigned char *at = static_cast<unsigned char *>(p[0]);
  regions[at] = {bytes, static_cast<unsigned char *>(p[1]) - at, true};
  struct sigaction action = {};
  action.sa_sigaction = on_write;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  return p[0];
}

void free_watched(void *p) {
  auto freed = regions.find(static_cast<unsigned char *>(p));
  watch_settle();
  std::erase_if(written, [&](unsigned char *page) { return region_of(page) == freed; });
  munmap(p, freed->second.bytes);
  munmap(freed->first + freed->second.open, freed->second.bytes);
  regions.erase(freed);
}

void watch_settle() { settled.clear(); }

void watch_begin() {
  unfinished.clear();
  for (auto &[page, was] : settled)
    for (size_t i = 0; i < PAGE; i += GRAIN)
      if (memcmp(page + i, &was[i], GRAIN)) unfinished.push_back({page + i, {}});
  for (auto &[at, r] : regions)
    if (r.fresh) protect(at, r.bytes, PROT_READ), r.fresh = false;
  for (unsigned char *page : written) protect(page, PAGE, PROT_READ);
  written.clear();
  mode = RUNNING;
}

void watch_end() {
  watch_publish();
  mode = IDLE;
}

void watch_hide() {
  for (stretch &s : unfinished) memcpy(s.kept, s.at, GRAIN), memset(open(s.at), 0xff, GRAIN);
  mode = HIDDEN;
}

void watch_reveal() {
  for (stretch &s : unfinished) memcpy(open(s.at), s.kept, GRAIN);
  mode = RUNNING;
}

void watch_enter(const std::vector<byte_written> &own) {
  for (const byte_written &b : own) *b.at = b.value;
}

void watch_leave(std::vector<byte_written> *own) {
  own->clear();
  for (auto &[page, was] : others) {
    for (size_t i = 0; i < PAGE; i++)
      if (page[i] != was[i]) own->push_back({page + i, page[i]});
    memcpy(page, was.data(), PAGE);
  }
  watch_publish();
}

void watch_publish() {
  for (auto &[page, was] : others) protect(page, PAGE, PROT_READ);
  others.clear();
}

bool watch_publish(const void *p, size_t bytes) {
  const unsigned char *at = static_cast<const unsigned char *>(p);
  size_t offset = reinterpret_cast<uintptr_t>(at) % PAGE;
  auto page = others.find(const_cast<unsigned char *>(at - offset));
  if (page == others.end()) return false;
  memcpy(&page->second[offset], at, bytes);
  return true;
}

} // namespace emu
