# Video server: 48 viewers read videos in sequence at 96 MB/s together, while one thread replaces videos that nobody
# watches, one each 10 s. The sizes are those of Filebench: 32 + 194 videos of 10 GB; scale it down.
set $filesize=10g
set $eventrate=96

eventgen rate=$eventrate

define fileset name=activevids,path=$dir,size=$filesize,entries=32,dirwidth=4,prealloc,paralloc
define fileset name=passivevids,path=$dir,size=$filesize,entries=194,dirwidth=20,prealloc=50,paralloc

define process name=vidwriter,instances=1
{
  thread name=vidwriter
  {
    flowop deletefile name=vidremover,filesetname=passivevids
    flowop createfile name=wrtopen,filesetname=passivevids,fd=1
    flowop writewholefile name=newvid,fd=1,srcfd=1,iosize=1m
    flowop closefile name=wrtclose,fd=1
    flowop delay name=replaceinterval,value=10
  }
}

define process name=vidreaders,instances=1
{
  thread name=vidreader,instances=48
  {
    flowop read name=vidread,filesetname=activevids,iosize=256k
    flowop bwlimit name=serverlimit,target=vidread
  }
}

run 60
