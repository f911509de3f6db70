#compdef dtrun
# zsh completion for dtrun; the program itself suggests the completions.
local -a lines found shown
lines=("${(@f)$(${words[1]} complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
local line
for line in $lines; do
  found+=("${line%%$'\t'*}")
  shown+=("${line%%$'\t'*}  ${line#*$'\t'}")
done
if (( $#found )); then
  if [[ $#found -eq 1 && $found[1] == *= ]]; then
    compadd -S '' -d shown -a found
  else
    compadd -d shown -a found
  fi
else
  _files
fi
