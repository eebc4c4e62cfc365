# bash completion for gompirun
_gompirun() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} flags='@FLAGS@' program='' i word name names=()
	COMPREPLY=()
	case ${COMP_WORDS[1]} in
@WORDS@	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ -z $program || ${COMP_WORDS[i]} == : ]] || continue
		word=${COMP_WORDS[i]/#--/-}
		[[ $word != -* ]] || word=${word//_/-}
		case $word in
		:) program='' ;;
		@TAKES@) ((i++)) ;;
		-*) ;;
		@PATTERN@) ((i == 1)) || program=${COMP_WORDS[i]} ;;
		*) program=${COMP_WORDS[i]} ;;
		esac
	done
	if [[ -n $program ]]; then
		COMPREPLY=($(compgen -f -- "$cur"))
		return
	fi
	prev=${prev/#--/-}
	case ${prev//_/-} in
@CASES@	esac
	case $cur in
	-*)
		for name in $flags; do
			name=${name#-}
			[[ $cur != *_* ]] || name=${name//-/_}
			[[ $cur == --* ]] && name=--$name || name=-$name
			names+=("$name")
		done
		COMPREPLY=($(compgen -W "${names[*]}" -- "$cur"))
		;;
	*)
		COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
		((COMP_CWORD > 1)) || COMPREPLY+=($(compgen -W '@COMMANDS@' -- "$cur"))
		;;
	esac
}
complete -o filenames -F _gompirun gompirun
