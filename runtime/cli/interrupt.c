/* Ctrl-C: see interrupt.h. */
#include "cli/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

static void catch_with(int flags) {
  struct sigaction old, action = {.sa_handler = on_interrupt, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
}

void catch_interrupt(void) { catch_with((int)SA_RESETHAND | SA_RESTART); }
void catch_interrupts(bool cut_reads) { catch_with(cut_reads ? 0 : SA_RESTART); }
