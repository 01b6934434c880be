import time, numpy as np
from fractions import Fraction
from sfumato.noise import poisson_noise as pn
from sfumato.noise.words import SystemWords
def best(name,g,n=80):
    ts=[]
    for _ in range(n):
        t=time.thread_time(); g(); ts.append(time.thread_time()-t)
    ts.sort(); print("%-30s %.3f %.3f ms"%(name,1e3*ts[0],1e3*ts[len(ts)//2]))
v=Fraction(500**2)/6; w=SystemWords(); N=100_000
for c in (1<<15,1<<14,1<<13,1<<12,1<<11):
    pn.CHUNK=c
    best("skellam %d"%c, lambda: pn.sample_skellam(v,N,w))
t=pn._table(v/2,64)
off=(t.start-t.first); off[t.start<0]=-1; off16=off.astype(np.int16)
SH=np.uint64(48)
def new(C):
    out=np.empty(N,dtype=np.int64); place=np.empty(2*C,dtype=np.uint64); ix=np.empty(2*C,dtype=np.int64); got=np.empty(2*C,dtype=np.int16)
    for b in range(0,N,C):
        part=out[b:b+C]; n=part.size
        p=place[:2*n]; w.fill(p); i=ix[:2*n]; g=got[:2*n]
        np.right_shift(p,SH,out=i.view(np.uint64))
        off16.take(i,out=g,mode="clip")
        rest=(g<0).nonzero()[0]
        some=p[rest]; found=t.searched(some); g[rest]=found
        u=rest[t.unsure(some,found)]
        np.subtract(g[:n],g[n:],out=part,dtype=np.int64)
    return out
for c in (1<<15,1<<14,1<<13,1<<12,1<<11):
    best("new %d"%c, lambda: new(c))
print(new(4096).var(), float(v))
