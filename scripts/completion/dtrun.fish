# fish completion for dtrun; the program itself suggests the completions.
function __dtrun_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l program $words[1]
    $program complete $words[2..-1] 2>/dev/null
end
complete -c dtrun -a '(__dtrun_complete)'
