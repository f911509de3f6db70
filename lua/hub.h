/* Models by name: what people call them on Hugging Face, and where its cache holds them. Nothing is downloaded. */
#ifndef DTL_HUB_H
#define DTL_HUB_H

#include "fail.h"

/* The path of the model `name`: a folder or a file, which is what it names; or an id ORG/NAME whose files lie in the cache
 * ($HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub), or ORG/NAME/FILE for one of them. A folder without config.json
 * that holds one .gguf file stands for that file. malloc'd; NULL: DTL_INPUT says what would download it. A name that can be
 * no id comes back as it is, whether or not there is such a file. */
char *hub_path(const char *name, dtl_error *err);

/* Calls see(user, folder) with the folder of each model in that cache, sorted by their ids. */
void hub_each(void (*see)(void *user, const char *folder), void *user);

#endif
