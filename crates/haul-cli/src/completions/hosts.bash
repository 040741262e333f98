_haul_known_hosts() {
    cat ~/.ssh/config ~/.ssh/config.d/* 2>/dev/null | awk 'tolower($1) == "host" { for (i = 2; i <= NF; i++) if ($i !~ /[*?!]/) print $i }'
    cat ~/.ssh/known_hosts 2>/dev/null | awk '$1 !~ /^[|@#[]/ { split($1, names, ","); for (i in names) print names[i] }'
}

_NAME_with_hosts() {
    _NAME "$@"
    # The word with its colons, at which readline divides.
    local line=${COMP_LINE:0:COMP_POINT} command=${COMP_WORDS[0]##*/} word
    word=${line##*[[:space:]]}
    [[ $command == haul ]] && command=${COMP_WORDS[1]-}
    [[ $word == -* || ( ${COMP_WORDS[0]##*/} == haul && COMP_CWORD -lt 2 ) ]] && return
    # The value of an option.
    [[ ${COMP_WORDS[COMP_CWORD-1]} == -* && ${COMPREPLY[0]--} != -* ]] && return
    case $command in
    cp | hcp)
        COMPREPLY=()
        if [[ $word == *://* ]]; then
            :
        elif [[ $word == *:* && ${word%%:*} != */* ]]; then
            local path name IFS=$'\n'
            path=$(printf %q "${word#*:}")
            for name in $(ssh -o BatchMode=yes -o ConnectTimeout=3 -- "${word%%:*}" "ls -1dp -- ${path/#\\~/\~}* 2>/dev/null" </dev/null 2>/dev/null); do
                [[ $COMP_WORDBREAKS == *:* ]] || name=${word%%:*}:$name
                COMPREPLY+=("$name")
            done
        else
            COMPREPLY=($(compgen -f -- "$word") $(compgen -S : -W "$(_haul_known_hosts)" -- "$word"))
        fi
        ;;
    perf | hperf | pipe | rsh | ssh)
        COMPREPLY+=($(compgen -W "$(_haul_known_hosts)" -- "$word"))
        ;;
    esac
}
complete -F _NAME_with_hosts -o nosort -o bashdefault -o default -o nospace NAME
