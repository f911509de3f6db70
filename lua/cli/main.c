/* The command line: generates under a policy, runs a driver, or lists what is installed. Standard output has generated
 * bytes only; every message is one line on standard error. Exit status: 0 success; 1 failure of the engine, a device or
 * a disk; 2 wrong usage or input; 3 failure of the policy; 130 Ctrl-C. */
#include "cli/chat.h"
#include "cli/complain.h"
#include "cli/completion.h"
#include "cli/generate_command.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/limits.h"
#include "cli/lists.h"
#include "cli/model_commands.h"
#include "cli/program.h"
#include "dtrun_ranks.h"

#include <string.h>
#include <unistd.h>

static int run_driver(int argc, char **argv) {
  if (argc < 1) return complain(EXIT_USAGE, "run: expected a driver, as in dtrun run SCRIPT; dtrun --list names them");
  if (cli_is_model(argv[0], "scripts"))
    return complain(EXIT_USAGE, "run: '%s' is a model, not a driver: dtrun %s, or dtrun chat %s", argv[0], argv[0],
                    argv[0]);
  catch_interrupt();
  return finish_output(dtl_run_driver(argv[0], argc - 1, argv + 1, &interrupted));
}

/* Called if ranks are missing, since a program that is not dtrun never joins. */
static void late(int ranks, int seconds) {
  _exit(
      complain(EXIT_USAGE,
               "mpirun: its %d programs have not all joined within %d s: every one must be dtrun, built with Open MPI "
               "(DTRUN_JOIN_SECONDS=N waits N seconds)",
               ranks, seconds));
}

int main(int argc, char **argv) {
  dt_error err;
  int rank, ranks, status = dt_ranks_join(&rank, &ranks, late, &err);
  if (status) return complain_of(&err);
  if (rank) return 0; /* the program of rank 0 has ended */
  if (ranks > 1) catch_end();
  if ((status = limits_check())) return status;
  if (argc > 1 && strcmp(argv[1], "run") == 0) return run_driver(argc - 2, argv + 2);
  if (argc > 1 && strcmp(argv[1], "doctor") == 0) return run_driver(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "complete") == 0) return complete(argc - 2, argv + 2);
  if (models_meant(argc - 1, argv + 1)) return models_run(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "serve") == 0)
    return program_run("dtrun-serve", argv + 1,
                       "this dtrun was built without serve: install libmicrohttpd-dev and build it again");
  if (argc == 2 && strcmp(argv[1], "help") == 0) argv[1] = "--help";
  if (argc == 2 && strcmp(argv[1], "version") == 0) argv[1] = "--version";
  bool talks = argc > 1 && strcmp(argv[1], "chat") == 0;
  cli_options o;
  bool parsed = !cli_parse(argc - 1 - talks, argv + 1 + talks, &o, &err);
  o.program = argv[0];
  if (parsed && o.verbose) complain_at_length();
  if (!parsed) {
    status = complain_of(&err);
  } else if (o.help && o.policy && !talks) {
    status = print_policy_help(&o);
  } else if (o.help) {
    print_help();
    status = finish_output(0);
  } else if (o.man) {
    print_manual();
    status = finish_output(0);
  } else if (o.version) {
    printf("dtrun %s\n", dt_version());
    status = finish_output(0);
  } else if (o.list) {
    status = print_lists();
  } else if (talks) {
    status = chat(&o);
  } else {
    status = generate(&o);
  }
  cli_free(&o);
  return status;
}
