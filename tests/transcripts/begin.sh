# Fill a draft in, and forget that pilot and log are one here.
rm rehearsals/mine.pilots.json; sed -i 's/FILL IN/said/' prereg/mine/* cards/mine.md
mkdir drafted; cp -r prereg cards mappings registers drafted
